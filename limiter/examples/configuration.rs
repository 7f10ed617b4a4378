//! Four levels of configuration, and where each limit comes from.
//!
//! Nothing to install: the table lives in this process. Run it with
//! `cargo run -p zae-limiter --example configuration`.

use std::error::Error;
use std::io::{Write, stdout};

use zae_limiter::{
    ConfigChange, ConfigLevel, Limit, NewEntity, OnUnavailable, PageRequest, RateLimiter, Repository,
};

type Result = std::result::Result<(), Box<dyn Error>>;

const USER: &str = "user-1";
const MODEL: &str = "gpt-4";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result {
    walk_through(&mut stdout()).await
}

pub(crate) async fn walk_through(out: &mut impl Write) -> Result {
    let repository = RateLimiter::embedded()
        .default_limits([Limit::per_minute("rpm", 10)?])
        .principal("ops@example.com")
        .build_repository()
        .await?;
    repository
        .create_entity(NewEntity::new(USER).name("A user"))
        .await?;

    writeln!(
        out,
        "What applies to {USER} on {MODEL}, as one level after the other is set:\n"
    )?;
    writeln!(out, "{:<34} {:<34} {:<16} unavailable", "step", "limits", "from")?;
    show(out, &repository, "the builder's defaults").await?;

    repository
        .set_system_defaults([Limit::per_minute("rpm", 20)?])
        .await?;
    show(out, &repository, "set for the system").await?;

    let limits = [Limit::per_minute("rpm", 100)?, Limit::per_minute("tpm", 40_000)?];
    let level = ConfigLevel::Resource(MODEL.parse()?);
    repository
        .set_config(
            &level,
            ConfigChange::new()
                .limits(limits)
                .on_unavailable(OnUnavailable::Block),
        )
        .await?;
    show(out, &repository, "set for the resource").await?;

    repository
        .set_default_limits(USER, [Limit::per_minute("rpm", 300)?])
        .await?;
    show(out, &repository, "set for the entity").await?;

    let limits = [
        Limit::per_minute("rpm", 1_000)?.with_burst(1_500)?,
        Limit::per_day("tpd", 5_000_000)?,
    ];
    let level = ConfigLevel::Entity(USER.parse()?, MODEL.parse()?);
    repository
        .set_config(
            &level,
            ConfigChange::new()
                .limits(limits)
                .on_unavailable(OnUnavailable::Allow),
        )
        .await?;
    show(out, &repository, "set for the entity and resource").await?;

    repository.delete_config(&level).await?;
    show(out, &repository, "deleted again").await?;
    repository
        .delete_config(&ConfigLevel::EntityDefault(USER.parse()?))
        .await?;
    show(out, &repository, "the entity's deleted too").await?;

    let stats = repository.cache_stats();
    writeln!(
        out,
        "\nThe cache served {} of {} lookups.",
        stats.hits,
        stats.hits + stats.misses
    )?;
    writeln!(
        out,
        "Resources with defaults: {}",
        repository.list_resources_with_defaults().await?.join(", ")
    )?;
    writeln!(
        out,
        "\nEvery change left an event. Those about {USER}, newest first:"
    )?;
    let subject = zae_limiter::audit::AuditSubject::Entity(USER.parse()?);
    for event in repository
        .list_audit_events(&subject, &PageRequest::new(10))
        .await?
        .items
    {
        let (who, what) = (
            event.principal.unwrap_or_default(),
            event.resource.unwrap_or_default(),
        );
        writeln!(
            out,
            "  {}  {:<15} {:<10} by {who}",
            event.timestamp,
            event.action.to_string(),
            what
        )?;
    }
    Ok(())
}

async fn show(out: &mut impl Write, repository: &Repository, step: &str) -> Result {
    // The second lookup is served from memory.
    repository.resolve_limits(USER, MODEL).await?;
    let resolved = repository.resolve_limits(USER, MODEL).await?;
    let limits: Vec<String> = resolved.limits.iter().map(ToString::to_string).collect();
    writeln!(
        out,
        "{step:<34} {:<34} {:<16} {} (from {})",
        limits.join(" "),
        resolved
            .limits_from
            .map_or("nowhere", zae_limiter::ConfigOrigin::as_str),
        resolved.on_unavailable,
        resolved.on_unavailable_from,
    )?;
    Ok(())
}
