//! Reading a stack: what is deployed, by whom, and where. Nothing here changes anything.

use std::collections::BTreeMap;

use aws_config::SdkConfig;
use aws_sdk_dynamodb::types::TableDescription;
use serde::Serialize;
use zae_limiter_template::deployer::Place;
use zae_limiter_template::{MANAGED_BY_TERRAFORM, StackOptions, Template, VERSION, tags_of_user};

use crate::cloud::Cloud;
use crate::deployed::{Deployed, Described};
use crate::desired::Desired;
use crate::outcome::{Change, Outcome};
use crate::owner::{MANAGED_BY, Owner, PEER_PREFIX, tagged};
use crate::patience::{Deadline, READING, patiently};
use crate::plan::describe_place;
use crate::situation::Situation;
use crate::version::is_newer;
use crate::{Clients, Error, Stack};

/// The health of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// The last operation succeeded.
    Healthy,
    /// An operation is running.
    InProgress,
    /// The last operation failed.
    Failed,
}

impl Health {
    pub(crate) fn of(stack: &Described) -> Self {
        match stack.situation() {
            Situation::Settled => Self::Healthy,
            Situation::Busy | Situation::CleaningUp | Situation::Review => Self::InProgress,
            _ => Self::Failed,
        }
    }
}

/// The status of a stack, without comparing it with anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Status {
    /// The stack's name.
    pub name: String,
    /// The stack's ARN.
    pub stack_id: String,
    /// Its account.
    pub account: Option<String>,
    /// Its region.
    pub region: Option<String>,
    /// Who created it.
    pub owner: Owner,
    /// CloudFormation's status, such as `UPDATE_COMPLETE`.
    pub status: String,
    /// Why it has that status, where CloudFormation says.
    pub reason: Option<String>,
    /// Its health.
    pub health: Health,
    /// The release that deployed it, if this project did.
    pub version: Option<String>,
    /// Whether it has termination protection.
    pub termination_protection: bool,
    /// When it was created, as RFC 3339.
    pub created: String,
    /// When it was last updated.
    pub updated: Option<String>,
    /// Its outputs.
    pub outputs: BTreeMap<String, String>,
    /// Logical ids of the resources that stay when it is deleted.
    pub retained: Vec<String>,
}

/// A stack found by its tags.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Discovered {
    /// The stack's name.
    pub stack_name: String,
    /// The name in its `zae-limiter:name` tag.
    pub user_name: String,
    /// Its account.
    pub account: String,
    /// Its region.
    pub region: String,
    /// Whether this project or zae-limiter for Python created it.
    pub owner: Owner,
    /// CloudFormation's status.
    pub status: String,
    /// Its health.
    pub health: Health,
    /// When it was created, as RFC 3339.
    pub created: String,
    /// When it was last updated.
    pub updated: Option<String>,
    /// The release that deployed it.
    pub version: Option<String>,
    /// The release of its functions.
    pub lambda_version: Option<String>,
    /// The version of its table's format.
    pub schema_version: Option<String>,
}

impl Discovered {
    fn of(stack: &Described) -> Self {
        let tag = |key: &str| stack.tags.get(&format!("zae-limiter:{key}")).cloned();
        let owner = match Owner::by_marks(&stack.parameters, &stack.tags) {
            Owner::Foreign => Owner::Peer,
            known => known,
        };
        let (account, region) = stack
            .place()
            .map_or_else(Default::default, |place| (place.account, place.region));
        let plain = stack
            .name
            .strip_prefix(PEER_PREFIX)
            .unwrap_or(&stack.name)
            .to_owned();
        Self {
            stack_name: stack.name.clone(),
            user_name: tag("name").unwrap_or(plain),
            account,
            region,
            owner,
            status: stack.status.clone(),
            health: Health::of(stack),
            created: stack.created.clone(),
            updated: stack.updated.clone(),
            version: tag("version"),
            lambda_version: tag("lambda-version"),
            schema_version: tag("schema-version"),
        }
    }
}

impl Stack {
    /// The stack's status; an error if it does not exist.
    pub async fn existing_status(&self) -> Result<Status, Error> {
        match self.status().await? {
            Some(status) => Ok(status),
            None => Err(self.missing().await),
        }
    }

    /// The stack's status, also of a stack of others; `None` if it does not exist.
    pub async fn status(&self) -> Result<Option<Status>, Error> {
        let Some(deployed) = self.observe(&self.reading()).await? else {
            return Ok(None);
        };
        let template = deployed.template.as_ref();
        let stack = &deployed.stack;
        let place = stack.place();
        Ok(Some(Status {
            name: stack.name.clone(),
            account: place.as_ref().map(|place| place.account.clone()),
            region: place.map(|place| place.region),
            stack_id: stack.id.clone(),
            owner: deployed.owner(),
            status: stack.status.clone(),
            reason: stack.reason.clone(),
            health: Health::of(stack),
            version: template
                .and_then(|template| template.version())
                .map(str::to_owned),
            termination_protection: stack.protected,
            created: stack.created.clone(),
            updated: stack.updated.clone(),
            outputs: stack.outputs.clone(),
            retained: template
                .into_iter()
                .flat_map(Template::retained)
                .map(str::to_owned)
                .collect(),
        }))
    }

    /// The error for a stack that does not exist, with the account and region where it was looked for.
    pub(crate) async fn missing(&self) -> Error {
        let place = match self.place().await {
            Ok(place) => describe_place(Some(&place.account), &place.region),
            Err(_) => describe_place(None, &self.cloud.region().unwrap_or_default()),
        };
        Error::NoSuchStack {
            stack: self.name.to_string(),
            place,
        }
    }

    pub(crate) fn unread(&self) -> Outcome {
        Outcome {
            change: Change::None,
            stack_id: String::new(),
            outputs: std::collections::BTreeMap::new(),
            audit_retention_days: self.options.audit_retention_days(),
            version: VERSION.to_owned(),
            warnings: vec![],
        }
    }

    /// The stack with its template; `None` if it does not exist.
    pub(crate) async fn observe(&self, deadline: &Deadline) -> Result<Option<Deployed>, Error> {
        let name = self.name.as_str();
        let Some(stack) = patiently(deadline, || self.cloud.describe(name)).await? else {
            return Ok(None);
        };
        match stack.situation() {
            Situation::Gone => Ok(None),
            Situation::Review => {
                let change_sets = if stack.tags.is_empty() {
                    patiently(deadline, || self.cloud.change_set_names(&stack.id)).await?
                } else {
                    vec![]
                };
                Ok(Some(Deployed::in_review(stack, change_sets)))
            }
            _ => match patiently(deadline, || self.cloud.template_body(&stack.id)).await {
                Ok(body) => Ok(Some(Deployed::new(stack, &body))),
                // Deleted between the two calls.
                Err(failure) if failure.no_such_stack() => Ok(None),
                Err(failure) => Err(failure.into()),
            },
        }
    }

    /// The same; an error if it does not exist.
    pub(crate) async fn existing(&self, deadline: &Deadline) -> Result<Deployed, Error> {
        match self.observe(deadline).await? {
            Some(deployed) => Ok(deployed),
            None => Err(self.missing().await),
        }
    }

    /// The account and region of the caller, where a stack would be created.
    pub async fn place(&self) -> Result<Place, Error> {
        self.cloud.caller().await
    }

    /// The region of the stack, if one is configured.
    pub fn region(&self) -> Option<String> {
        self.cloud.region().ok()
    }

    /// The options that the stack was last deployed with, by any tool. An upgrade starts from them. Makes two read-only calls.
    ///
    /// Options that do not affect the stack, such as the memory of a function that it does not have, are those of the last
    /// deployment that changed something. The location of the functions' archives is not stored.
    pub async fn deployed_options(&self) -> Result<StackOptions, Error> {
        let deployed = self.existing(&self.reading()).await?;
        self.check_owner(&deployed)?;
        let unknown = |reason: String| Error::OptionsUnknown {
            stack: self.name.to_string(),
            reason,
        };
        let template = deployed.template.as_ref();
        let stored = template.map_or(Ok(None), Template::options);
        let Some(stored) = stored.map_err(|error| unknown(error.to_string()))? else {
            return Err(unknown("its template does not store them".to_owned()));
        };
        let options = stored.tags(tags_of_user(&deployed.stack.tags)).build();
        options.map_err(|error| unknown(error.to_string()))
    }

    /// Whether another process has changed the stack since it was read.
    pub(super) async fn moved(&self, since: Option<&Deployed>) -> Result<bool, Error> {
        let now = self.cloud.describe(self.name.as_str()).await?;
        let mark = |stack: &Described| {
            (
                stack.id.clone(),
                stack.status.clone(),
                stack.changed_at().to_owned(),
            )
        };
        Ok(now.as_ref().map(mark) != since.map(|since| mark(&since.stack)))
    }

    /// An error unless this project created the stack.
    pub(super) fn check_owner(&self, deployed: &Deployed) -> Result<(), Error> {
        match deployed.owner() {
            Owner::Ours => Ok(()),
            owner => Err(Error::NotOurs {
                stack: self.name.to_string(),
                owner,
            }),
        }
    }

    /// An error if another tool deploys the stack, unless the caller takes it over.
    pub(super) fn check_manager(&self, deployed: &Deployed) -> Result<(), Error> {
        // A stack gets its tags when its first change set is executed.
        let in_review = deployed.stack.situation() == Situation::Review;
        match deployed.managed_elsewhere() {
            Some(reason) if !self.permissions.adopt && !in_review => Err(Error::ManagedElsewhere {
                stack: self.name.to_string(),
                reason,
            }),
            _ => Ok(()),
        }
    }

    /// The state to keep and a warning, for a stack that a later release has deployed.
    pub(super) fn newer(&self, deployed: &Deployed) -> Option<(Desired, String)> {
        let template = deployed.template.as_ref()?;
        let version = template.version()?;
        (is_newer(version, VERSION) && !self.permissions.downgrade).then(|| {
            let warning = format!(
                "the stack was deployed by release {version}, which is later than this release, {VERSION}; it was not changed"
            );
            (Desired::deployed(template, &deployed.stack.tags), warning)
        })
    }

    /// Finds every stack of this project and of zae-limiter for Python in the account and region of this configuration.
    pub async fn discover(aws: &SdkConfig) -> Result<Vec<Discovered>, Error> {
        Self::discover_with(Clients::new(aws)).await
    }

    /// [`discover`](Stack::discover) with these clients.
    pub async fn discover_with(clients: Clients) -> Result<Vec<Discovered>, Error> {
        let cloud = Cloud {
            clients,
            service_role: None,
        };
        let deadline = Deadline::after(READING);
        let stacks = patiently(&deadline, || cloud.describe_all()).await?;
        let ours = stacks
            .iter()
            .filter(|stack| tagged(&stack.tags) || stack.name.starts_with(PEER_PREFIX));
        let mut found: Vec<_> = ours
            .filter(|stack| stack.status != "DELETE_COMPLETE")
            .map(Discovered::of)
            .collect();
        found.sort_by(|a, b| (&a.user_name, &a.stack_name).cmp(&(&b.user_name, &b.stack_name)));
        Ok(found)
    }

    /// Whether the table of this name exists and Terraform manages it. Such a table has no stack, and
    /// [`ensure`](Stack::ensure) leaves it alone.
    pub async fn is_managed_by_terraform(&self) -> Result<bool, Error> {
        Ok(self.table_of_terraform().await?.is_some())
    }

    /// The table, if Terraform manages it.
    pub(crate) async fn table_of_terraform(&self) -> Result<Option<TableDescription>, Error> {
        let table = match self.cloud.table(self.name.as_str()).await {
            Err(failure) if failure.denied() => None,
            table => table?,
        };
        let Some(table) = table else { return Ok(None) };
        Ok(self.managed(&table).await?.then_some(table))
    }

    /// Whether a table has the tag of the Terraform module.
    pub(crate) async fn managed(&self, table: &TableDescription) -> Result<bool, Error> {
        let manager = self.cloud.tag_of(table, MANAGED_BY).await?;
        Ok(manager.as_deref() == Some(MANAGED_BY_TERRAFORM))
    }

    /// The outcome of leaving the table alone.
    pub(crate) fn left_to_terraform(&self) -> Outcome {
        let why = Error::TableManaged {
            table: self.name.to_string(),
        };
        Outcome {
            warnings: vec![why.to_string()],
            ..self.unread()
        }
    }
}
