//! Pages of lists: which may be asked for.

use zae_limiter::audit::AuditSubject;
use zae_limiter::error::Invalid;
use zae_limiter::pagination::Cursor;
use zae_limiter::usage::UsageQuery;
use zae_limiter::{EntitySearch, Error, NewEntity, PageRequest};

use crate::store::support::{Stage, Weather, page, rpm};

on_every_store! {
    a_page_of_a_senseless_size_is_refused,
    a_cursor_of_another_list_is_refused,
}

async fn a_page_of_a_senseless_size_is_refused(stage: Stage) {
    let repository = stage.repository().await;
    let query = UsageQuery::of_resource("gpt-4").unwrap();
    for size in [0, PageRequest::MAX_SIZE + 1, usize::MAX] {
        for refused in [
            repository.list_children("acme", &page(size)).await.map(drop),
            repository.list_entities(&page(size)).await.map(drop),
            repository
                .list_audit_events(&AuditSubject::System, &page(size))
                .await
                .map(drop),
            repository
                .list_usage_snapshots(&query, &page(size))
                .await
                .map(drop),
        ] {
            assert!(
                matches!(
                    &refused,
                    Err(Error::Invalid(Invalid::Argument {
                        field: "page size",
                        ..
                    }))
                ),
                "{size}: {refused:?}"
            );
        }
    }
}

async fn a_cursor_of_another_list_is_refused(stage: Stage) {
    let repository = stage.repository().await;
    for parent in ["acme", "other"] {
        repository.create_entity(NewEntity::new(parent)).await.unwrap();
        for number in 0..3 {
            let id = format!("{parent}-{number}");
            repository
                .create_entity(NewEntity::new(&id).parent(parent))
                .await
                .unwrap();
            repository.set_limits(&id, "gpt-4", [rpm(1)]).await.unwrap();
            repository.set_limits(&id, "gpt-3", [rpm(1)]).await.unwrap();
        }
    }
    let (gpt_3, gpt_4) = ("gpt-3".parse().unwrap(), "gpt-4".parse().unwrap());
    let subject = |id: &str| AuditSubject::Entity(id.parse().unwrap());
    let cursors: [Cursor; 4] = [
        repository
            .list_children("acme", &page(1))
            .await
            .unwrap()
            .next
            .unwrap(),
        repository.list_entities(&page(1)).await.unwrap().next.unwrap(),
        repository
            .list_audit_events(&subject("acme-0"), &page(1))
            .await
            .unwrap()
            .next
            .unwrap(),
        repository
            .list_entities_with_custom_limits(Some(&gpt_4), &page(1))
            .await
            .unwrap()
            .next
            .unwrap(),
    ];
    let usage = UsageQuery::of_entity("acme-0").unwrap();
    for (own, cursor) in cursors.iter().enumerate() {
        let request = || page(1).after(cursor.clone());
        let mut responses = vec![
            repository.list_children("acme", &request()).await.map(drop),
            repository.list_entities(&request()).await.map(drop),
            repository
                .list_audit_events(&subject("acme-0"), &request())
                .await
                .map(drop),
            repository
                .list_entities_with_custom_limits(Some(&gpt_4), &request())
                .await
                .map(drop),
        ];
        let fits = responses.remove(own);
        assert!(fits.is_ok(), "{own}: {fits:?}");
        responses.extend([
            repository.list_children("other", &request()).await.map(drop),
            repository
                .list_audit_events(&subject("acme-1"), &request())
                .await
                .map(drop),
            repository
                .list_entities_with_custom_limits(Some(&gpt_3), &request())
                .await
                .map(drop),
            repository
                .list_usage_snapshots(&usage, &request())
                .await
                .map(drop),
        ]);
        for refused in responses {
            assert!(
                matches!(
                    &refused,
                    Err(Error::Invalid(Invalid::Argument { field: "cursor", .. }))
                ),
                "{own}: {refused:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_search_skips_no_entity_where_the_pages_of_a_query_end_early() {
    let stage = Stage::faulty(Weather::OneItemPages);
    let repository = stage.repository().await;
    for (entity, resource) in [("a", "gpt-3"), ("b", "gpt-3"), ("c", "gpt-3"), ("d", "gpt-4")] {
        repository.create_entity(NewEntity::new(entity)).await.unwrap();
        repository.set_limits(entity, resource, [rpm(1)]).await.unwrap();
    }
    let search = EntitySearch::on(["gpt-3", "gpt-4"].map(|resource| resource.parse().unwrap()));
    let mut found = Vec::new();
    let mut next = search.clone();
    loop {
        let ids = repository.search_entities(&next, 2).await.unwrap();
        let Some(last) = ids.last() else { break };
        next = search.clone().after(last.clone());
        found.extend(ids.iter().map(ToString::to_string));
    }
    assert_eq!(found, ["a", "b", "c", "d"]);
}
