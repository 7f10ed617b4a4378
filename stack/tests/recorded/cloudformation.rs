//! A small model of CloudFormation and of the table. It refuses what they refuse: repeated names, wrong states, changes while
//! another is running, and change sets of an earlier state. Each look at the stack lets a running operation advance.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use aws_sdk_cloudformation::Client as Cfn;
use aws_sdk_cloudformation::error::ErrorMetadata;
use aws_sdk_cloudformation::operation::continue_update_rollback::ContinueUpdateRollbackOutput;
use aws_sdk_cloudformation::operation::create_change_set::{
    CreateChangeSetError, CreateChangeSetInput, CreateChangeSetOutput,
};
use aws_sdk_cloudformation::operation::create_stack::{
    CreateStackError, CreateStackInput, CreateStackOutput,
};
use aws_sdk_cloudformation::operation::delete_change_set::{DeleteChangeSetError, DeleteChangeSetOutput};
use aws_sdk_cloudformation::operation::delete_stack::{
    DeleteStackError, DeleteStackInput, DeleteStackOutput,
};
use aws_sdk_cloudformation::operation::describe_change_set::{
    DescribeChangeSetError, DescribeChangeSetOutput,
};
use aws_sdk_cloudformation::operation::describe_stack_events::DescribeStackEventsOutput;
use aws_sdk_cloudformation::operation::describe_stack_resources::{
    DescribeStackResourcesError, DescribeStackResourcesOutput,
};
use aws_sdk_cloudformation::operation::describe_stacks::{DescribeStacksError, DescribeStacksOutput};
use aws_sdk_cloudformation::operation::detect_stack_resource_drift::DetectStackResourceDriftOutput;
use aws_sdk_cloudformation::operation::execute_change_set::{
    ExecuteChangeSetError, ExecuteChangeSetInput, ExecuteChangeSetOutput,
};
use aws_sdk_cloudformation::operation::get_template::{GetTemplateError, GetTemplateOutput};
use aws_sdk_cloudformation::operation::list_change_sets::ListChangeSetsOutput;
use aws_sdk_cloudformation::operation::list_stacks::ListStacksOutput;
use aws_sdk_cloudformation::operation::update_stack::{
    UpdateStackError, UpdateStackInput, UpdateStackOutput,
};
use aws_sdk_cloudformation::primitives::DateTime;
use aws_sdk_cloudformation::types::{
    Change, ChangeAction, ChangeSetStatus, ChangeSetSummary, ChangeSetType, Replacement, ResourceChange,
    ResourceStatus, Stack, StackEvent, StackResource, StackResourceDrift, StackResourceDriftStatus,
    StackStatus, Tag,
};
use aws_sdk_dynamodb::Client as DynamoDb;
use aws_sdk_dynamodb::operation::delete_table::{DeleteTableError, DeleteTableOutput};
use aws_sdk_dynamodb::operation::describe_table::{DescribeTableError, DescribeTableOutput};
use aws_sdk_dynamodb::operation::list_tags_of_resource::ListTagsOfResourceOutput;
use aws_sdk_dynamodb::operation::tag_resource::TagResourceOutput;
use aws_sdk_dynamodb::operation::untag_resource::UntagResourceOutput;
use aws_sdk_dynamodb::operation::update_table::UpdateTableOutput;
use aws_sdk_iam::operation::list_attached_role_policies::ListAttachedRolePoliciesOutput;
use aws_sdk_iam::operation::list_entities_for_policy::ListEntitiesForPolicyOutput;
use aws_smithy_mocks::{MockResponse, Rule, mock};
use serde_json::Value;

use super::NAME;
use super::existing_table::{TABLE_ARN, table as fitting_table};
use super::tape::{Tape, caller};

const TABLE: &str = "RateLimitsTable";
const ARN: &str = "arn:aws:cloudformation:us-east-1:123456789012";

/// What an operation does when it ends.
#[derive(Debug, Clone, PartialEq)]
enum Work {
    Create {
        imports: bool,
    },
    Update {
        template: Value,
        tags: BTreeMap<String, String>,
    },
    Delete,
}

#[derive(Debug, Clone)]
struct Operation {
    work: Work,
    looks_left: usize,
    fails: bool,
}

#[derive(Debug, Clone)]
struct Deployed {
    id: String,
    status: String,
    template: Value,
    tags: BTreeMap<String, String>,
    created_at: i64,
    updated_at: Option<i64>,
    operation: Option<Operation>,
    /// Status, reason and token, oldest first.
    events: Vec<(String, String, String)>,
}

#[derive(Debug, Clone)]
struct ChangeSet {
    name: String,
    arn: String,
    stack: String,
    creates: bool,
    template: Value,
    tags: BTreeMap<String, String>,
    /// Of the stack when the change set was created.
    stack_changed_at: i64,
    changes: Vec<ResourceChange>,
    /// Whether its computation still shows as running.
    pending: bool,
}

#[derive(Debug, Clone, Default)]
struct Table {
    protected: bool,
    /// Whether the stack has it among its resources.
    owned: bool,
    tags: BTreeMap<String, String>,
}

#[derive(Debug, Default)]
struct State {
    stack: Option<Deployed>,
    deleted: Vec<Deployed>,
    change_sets: Vec<ChangeSet>,
    table: Option<Table>,
    /// Ids and times.
    clock: i64,
    fails_next: bool,
    /// Tables with data that a stack operation has deleted.
    lost: usize,
    /// Every name that a change set had.
    names: Vec<String>,
}

/// The model; clones share their state.
#[derive(Debug, Clone, Default)]
pub(crate) struct Model(Arc<Mutex<State>>);

fn meta(code: &str, message: impl Into<String>) -> ErrorMetadata {
    ErrorMetadata::builder()
        .code(code)
        .message(message.into())
        .build()
}

fn invalid(message: impl Into<String>) -> ErrorMetadata {
    meta("ValidationError", message)
}

fn absent(stack: &str) -> ErrorMetadata {
    invalid(format!("Stack with id {stack} does not exist"))
}

fn parse(body: Option<&str>) -> Value {
    serde_json::from_str(body.expect("a template body")).unwrap()
}

fn tags_of(tags: &[Tag]) -> BTreeMap<String, String> {
    let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
    tags.iter()
        .map(|tag| (text(tag.key()), text(tag.value())))
        .collect()
}

fn protects(template: &Value) -> bool {
    template["Resources"][TABLE]["Properties"]["DeletionProtectionEnabled"] == true
}

impl Deployed {
    fn changed_at(&self) -> i64 {
        self.updated_at.unwrap_or(self.created_at)
    }

    fn is_busy(&self) -> bool {
        self.operation.is_some()
    }

    fn in_review(&self) -> bool {
        self.status == "REVIEW_IN_PROGRESS"
    }

    /// An error unless the stack can be updated.
    fn updatable(&self) -> Result<(), ErrorMetadata> {
        let states = [
            "CREATE_COMPLETE",
            "UPDATE_COMPLETE",
            "UPDATE_ROLLBACK_COMPLETE",
            "IMPORT_COMPLETE",
        ];
        if states.contains(&self.status.as_str()) {
            return Ok(());
        }
        Err(invalid(format!(
            "Stack:{} is in {} state and can not be updated.",
            self.id, self.status
        )))
    }

    fn begin(&mut self, status: &str, token: Option<&str>, operation: Operation) {
        status.clone_into(&mut self.status);
        self.operation = Some(operation);
        let token = token.unwrap_or_default().to_owned();
        self.events
            .push((status.to_owned(), "User Initiated".to_owned(), token));
    }

    fn end(&mut self, status: &str, reason: &str) {
        status.clone_into(&mut self.status);
        let token = self
            .events
            .last()
            .map(|event| event.2.clone())
            .unwrap_or_default();
        self.events.push((status.to_owned(), reason.to_owned(), token));
    }
}

impl State {
    fn tick(&mut self) -> i64 {
        self.clock += 1;
        self.clock
    }

    fn named(&mut self, stack: &str) -> Option<&mut Deployed> {
        let found = self.stack.as_mut()?;
        (stack == NAME || stack == found.id).then_some(found)
    }

    fn operation(&mut self, work: Work) -> Operation {
        let looks_left = usize::try_from(self.tick() % 3).unwrap() + 1;
        Operation {
            work,
            looks_left,
            fails: std::mem::take(&mut self.fails_next),
        }
    }

    fn shell(&mut self) -> Deployed {
        let now = self.tick();
        Deployed {
            id: format!("{ARN}:stack/{NAME}/{now}"),
            status: "REVIEW_IN_PROGRESS".to_owned(),
            template: Value::Null,
            tags: BTreeMap::new(),
            created_at: now,
            updated_at: None,
            operation: None,
            events: vec![(
                "REVIEW_IN_PROGRESS".to_owned(),
                "User Initiated".to_owned(),
                String::new(),
            )],
        }
    }

    /// Lets a running operation advance by one look.
    fn advance(&mut self) {
        let Some(stack) = &mut self.stack else { return };
        let Some(operation) = &mut stack.operation else {
            return;
        };
        operation.looks_left -= 1;
        if operation.looks_left > 0 {
            return;
        }
        let operation = stack.operation.take().unwrap();
        match operation.work {
            Work::Create { imports } => self.end_creation(imports, operation.fails),
            Work::Update { template, tags } => {
                if operation.fails {
                    stack.end("UPDATE_ROLLBACK_IN_PROGRESS", "");
                    stack.end("UPDATE_ROLLBACK_COMPLETE", "");
                    return;
                }
                if let Some(table) = &mut self.table {
                    table.protected = protects(&template);
                }
                (stack.template, stack.tags) = (template, tags);
                stack.end("UPDATE_COMPLETE", "");
            }
            Work::Delete => {
                // The table is retained.
                if let Some(table) = &mut self.table {
                    table.owned = false;
                }
                let mut gone = self.stack.take().unwrap();
                gone.end("DELETE_COMPLETE", "");
                self.deleted.push(gone);
                self.change_sets.clear();
            }
        }
    }

    fn end_creation(&mut self, imports: bool, fails: bool) {
        let stack = self.stack.as_mut().unwrap();
        let taken = !imports && self.table.is_some();
        if !fails && !taken {
            let table = self.table.get_or_insert_with(|| Table {
                protected: protects(&stack.template),
                ..Table::default()
            });
            table.owned = true;
            stack.end("CREATE_COMPLETE", "");
            return;
        }
        let reason = if taken {
            "demo already exists"
        } else {
            "no capacity"
        };
        stack.end("ROLLBACK_IN_PROGRESS", reason);
        if imports {
            // A rollback deletes what was imported, unless it is protected.
            if self.table.as_ref().is_some_and(|table| !table.protected) {
                self.table = None;
                self.lost += 1;
            }
        } else if !taken && protects(&stack.template) {
            // The new table cannot be deleted.
            self.table = Some(Table {
                protected: true,
                owned: true,
                ..Table::default()
            });
            stack.end("ROLLBACK_FAILED", "the table has deletion protection");
            return;
        }
        stack.end("ROLLBACK_COMPLETE", "");
    }

    fn create_stack(&mut self, input: &CreateStackInput) -> Result<CreateStackOutput, ErrorMetadata> {
        if self.stack.is_some() {
            return Err(meta("AlreadyExistsException", "Stack [demo] already exists"));
        }
        let mut stack = self.shell();
        stack.events.clear();
        stack.template = parse(input.template_body());
        stack.tags = tags_of(input.tags());
        let operation = self.operation(Work::Create { imports: false });
        stack.begin("CREATE_IN_PROGRESS", input.client_request_token(), operation);
        let id = stack.id.clone();
        self.stack = Some(stack);
        Ok(CreateStackOutput::builder().stack_id(id).build())
    }

    fn update_stack(&mut self, input: &UpdateStackInput) -> Result<UpdateStackOutput, ErrorMetadata> {
        let name = input.stack_name().unwrap();
        let (template, tags) = (parse(input.template_body()), tags_of(input.tags()));
        let now = self.tick();
        let operation = self.operation(Work::Update {
            template: template.clone(),
            tags: tags.clone(),
        });
        let stack = self.named(name).ok_or_else(|| absent(name))?;
        stack.updatable()?;
        if stack.template == template && stack.tags == tags {
            return Err(invalid("No updates are to be performed."));
        }
        stack.updated_at = Some(now);
        stack.begin("UPDATE_IN_PROGRESS", input.client_request_token(), operation);
        Ok(UpdateStackOutput::builder().build())
    }

    fn delete_stack(&mut self, input: &DeleteStackInput) -> Result<DeleteStackOutput, ErrorMetadata> {
        let operation = self.operation(Work::Delete);
        let retains = !input.retain_resources().is_empty();
        let Some(stack) = self.named(input.stack_name().unwrap()) else {
            return Ok(DeleteStackOutput::builder().build());
        };
        if stack.is_busy() {
            return Err(invalid(format!(
                "Stack [{NAME}] cannot be deleted while in status {}",
                stack.status
            )));
        }
        if retains && stack.status != "DELETE_FAILED" {
            return Err(invalid("only a stack in DELETE_FAILED can retain resources"));
        }
        stack.begin("DELETE_IN_PROGRESS", None, operation);
        Ok(DeleteStackOutput::builder().build())
    }

    fn create_change_set(
        &mut self,
        input: &CreateChangeSetInput,
    ) -> Result<CreateChangeSetOutput, ErrorMetadata> {
        let (stack_name, name) = (input.stack_name().unwrap(), input.change_set_name().unwrap());
        let creates = input.change_set_type() == Some(&ChangeSetType::Create);
        let imports = input.import_existing_resources() == Some(true);
        match self.named(stack_name) {
            None if !creates || stack_name != NAME => return Err(absent(stack_name)),
            None => {
                let shell = self.shell();
                self.stack = Some(shell);
            }
            Some(stack) if creates && !stack.in_review() => {
                return Err(invalid(format!(
                    "Stack [{NAME}] already exists and cannot be created again with the changeSet [{name}]."
                )));
            }
            Some(stack) if !creates => stack.updatable()?,
            Some(_) => {}
        }
        if self.change_sets.iter().any(|other| other.name == name) {
            return Err(meta(
                "AlreadyExistsException",
                format!("ChangeSet {name} already exists"),
            ));
        }
        let now = self.tick();
        let stack = self.stack.as_ref().unwrap();
        let template = parse(input.template_body());
        let changes = changes(&stack.template, &template, imports && self.table.is_some());
        let change_set = ChangeSet {
            name: name.to_owned(),
            arn: format!("{ARN}:changeSet/{name}/{now}"),
            stack: stack.id.clone(),
            creates,
            template,
            tags: tags_of(input.tags()),
            stack_changed_at: stack.changed_at(),
            changes,
            pending: true,
        };
        let output = CreateChangeSetOutput::builder()
            .id(&change_set.arn)
            .stack_id(&change_set.stack);
        self.names.push(name.to_owned());
        self.change_sets.push(change_set);
        Ok(output.build())
    }

    fn is_empty(&self, change_set: &ChangeSet) -> bool {
        let stack = self.stack.as_ref().unwrap();
        stack.template == change_set.template && stack.tags == change_set.tags
    }

    fn describe_change_set(&mut self, arn: &str) -> Result<DescribeChangeSetOutput, ErrorMetadata> {
        let found = self
            .change_sets
            .iter()
            .position(|set| set.arn == arn || set.name == arn);
        let found =
            found.ok_or_else(|| meta("ChangeSetNotFound", format!("ChangeSet [{arn}] does not exist")))?;
        let was_pending = std::mem::replace(&mut self.change_sets[found].pending, false);
        let set = self.change_sets[found].clone();
        let output = DescribeChangeSetOutput::builder()
            .change_set_id(&set.arn)
            .stack_id(&set.stack);
        if was_pending {
            return Ok(output.status(ChangeSetStatus::CreateInProgress).build());
        }
        if self.is_empty(&set) {
            let reason = "The submitted information didn't contain changes. Submit different information.";
            return Ok(output
                .status(ChangeSetStatus::Failed)
                .status_reason(reason)
                .build());
        }
        let changes = set
            .changes
            .iter()
            .map(|change| Change::builder().resource_change(change.clone()).build());
        Ok(output
            .status(ChangeSetStatus::CreateComplete)
            .set_changes(Some(changes.collect()))
            .build())
    }

    fn execute(&mut self, input: &ExecuteChangeSetInput) -> Result<ExecuteChangeSetOutput, ErrorMetadata> {
        let arn = input.change_set_name().unwrap();
        let missing = || meta("ChangeSetNotFound", format!("ChangeSet [{arn}] does not exist"));
        let set = self
            .change_sets
            .iter()
            .find(|set| set.arn == arn || set.name == arn);
        let set = set.ok_or_else(missing)?.clone();
        let unfit = |why: &str| {
            meta(
                "InvalidChangeSetStatus",
                format!("ChangeSet [{arn}] cannot be executed in its current status of [{why}]"),
            )
        };
        if set.pending {
            return Err(unfit("CREATE_IN_PROGRESS"));
        }
        if self.is_empty(&set) {
            return Err(unfit("FAILED"));
        }
        let stack = self.stack.as_ref().unwrap();
        if stack.is_busy() || stack.changed_at() != set.stack_changed_at {
            return Err(unfit("OBSOLETE"));
        }
        let imports = set
            .changes
            .iter()
            .any(|change| change.action() == Some(&ChangeAction::Import));
        let now = self.tick();
        let work = if set.creates {
            Work::Create { imports }
        } else {
            Work::Update {
                template: set.template.clone(),
                tags: set.tags.clone(),
            }
        };
        let operation = self.operation(work);
        let stack = self.stack.as_mut().unwrap();
        stack.updated_at = Some(now);
        let status = if set.creates {
            (stack.template, stack.tags) = (set.template, set.tags);
            "CREATE_IN_PROGRESS"
        } else {
            "UPDATE_IN_PROGRESS"
        };
        stack.begin(status, input.client_request_token(), operation);
        // The other change sets are of an earlier state.
        self.change_sets.clear();
        Ok(ExecuteChangeSetOutput::builder().build())
    }

    fn describe(&mut self, name: Option<&str>) -> Result<DescribeStacksOutput, ErrorMetadata> {
        self.advance();
        let name = name.unwrap_or(NAME);
        let deleted = self.deleted.iter().find(|stack| stack.id == name).cloned();
        let found = self.named(name).cloned().or(deleted);
        let stack = found.ok_or_else(|| absent(name))?;
        let time = |seconds: i64| DateTime::from_secs(1_790_000_000 + seconds);
        let tags = stack.tags.iter();
        let tags = tags.map(|(key, value)| Tag::builder().key(key).value(value).build());
        let described = Stack::builder()
            .stack_name(NAME)
            .stack_id(&stack.id)
            .stack_status(StackStatus::from(stack.status.as_str()))
            .creation_time(time(stack.created_at))
            .set_last_updated_time(stack.updated_at.map(time))
            .set_tags(Some(tags.collect()));
        Ok(DescribeStacksOutput::builder().stacks(described.build()).build())
    }

    fn events(&self, name: &str) -> DescribeStackEventsOutput {
        let all = self.stack.iter().chain(&self.deleted);
        let found = all.into_iter().find(|stack| name == NAME || stack.id == name);
        let events = found.into_iter().flat_map(|stack| {
            let events = stack.events.iter().enumerate().rev();
            events.map(|(at, (status, reason, token))| {
                let event = StackEvent::builder()
                    .event_id(at.to_string())
                    .stack_id(&stack.id)
                    .stack_name(NAME)
                    .logical_resource_id(NAME)
                    .resource_type("AWS::CloudFormation::Stack")
                    .resource_status(ResourceStatus::from(status.as_str()))
                    .timestamp(DateTime::from_secs(1_790_000_000));
                let filled = |text: &String| (!text.is_empty()).then(|| text.clone());
                event
                    .set_resource_status_reason(filled(reason))
                    .set_client_request_token(filled(token))
                    .build()
            })
        });
        DescribeStackEventsOutput::builder()
            .set_stack_events(Some(events.collect()))
            .build()
    }

    fn resources(
        &self,
        stack: Option<&str>,
        physical: Option<&str>,
    ) -> Result<DescribeStackResourcesOutput, ErrorMetadata> {
        let owned = self.table.as_ref().is_some_and(|table| table.owned);
        if physical.is_some() && !owned {
            return Err(invalid(format!("Stack for {NAME} does not exist")));
        }
        assert!(stack.is_some() || physical.is_some());
        let resource = StackResource::builder()
            .stack_name(NAME)
            .logical_resource_id(TABLE)
            .physical_resource_id(NAME)
            .resource_type("AWS::DynamoDB::Table")
            .timestamp(DateTime::from_secs(1_790_000_000))
            .resource_status(ResourceStatus::CreateComplete);
        let found = owned.then(|| resource.build()).into_iter().collect();
        Ok(DescribeStackResourcesOutput::builder()
            .set_stack_resources(Some(found))
            .build())
    }
}

/// The changes between two templates.
fn changes(old: &Value, new: &Value, imports: bool) -> Vec<ResourceChange> {
    let resources = new["Resources"].as_object().unwrap();
    let changed = resources.iter().filter_map(|(id, resource)| {
        let before = &old["Resources"][id];
        let action = if before.is_null() && imports && id == TABLE {
            ChangeAction::Import
        } else if before.is_null() {
            ChangeAction::Add
        } else if before != resource {
            ChangeAction::Modify
        } else {
            return None;
        };
        let change = ResourceChange::builder()
            .logical_resource_id(id)
            .resource_type(resource["Type"].as_str().unwrap())
            .set_replacement((action == ChangeAction::Modify).then_some(Replacement::False))
            .action(action);
        Some(change.build())
    });
    changed.collect()
}

macro_rules! rule {
    ($model:expr, $client:ident :: $operation:ident, $error:ident, |$state:ident, $input:ident| $body:expr) => {{
        let model = $model.clone();
        mock!($client::$operation).then_compute_response(move |$input| {
            let $state = &mut *model.0.lock().unwrap();
            let result: Result<_, ErrorMetadata> = $body;
            match result {
                Ok(output) => MockResponse::Output(output),
                Err(error) => MockResponse::Error($error::generic(error)),
            }
        })
    }};
}

macro_rules! always {
    ($model:expr, $client:ident :: $operation:ident, |$state:ident, $input:ident| $body:expr) => {{
        let model = $model.clone();
        mock!($client::$operation).then_compute_response(move |$input| {
            let $state = &mut *model.0.lock().unwrap();
            MockResponse::Output($body)
        })
    }};
}

impl Model {
    /// Clients of the model.
    pub(crate) fn tape(&self) -> Tape {
        Tape {
            cloudformation: self.cloudformation(),
            dynamodb: self.dynamodb(),
            sts: vec![caller()],
            iam: vec![
                mock!(aws_sdk_iam::Client::list_entities_for_policy)
                    .then_output(|| ListEntitiesForPolicyOutput::builder().build()),
                mock!(aws_sdk_iam::Client::list_attached_role_policies)
                    .then_output(|| ListAttachedRolePoliciesOutput::builder().build()),
            ],
            ..Tape::default()
        }
        .with_free_names()
    }

    fn cloudformation(&self) -> Vec<Rule> {
        vec![
            rule!(self, Cfn::create_stack, CreateStackError, |state, input| state
                .create_stack(input)),
            rule!(self, Cfn::update_stack, UpdateStackError, |state, input| state
                .update_stack(input)),
            rule!(self, Cfn::delete_stack, DeleteStackError, |state, input| state
                .delete_stack(input)),
            rule!(
                self,
                Cfn::create_change_set,
                CreateChangeSetError,
                |state, input| { state.create_change_set(input) }
            ),
            rule!(
                self,
                Cfn::describe_change_set,
                DescribeChangeSetError,
                |state, input| state.describe_change_set(input.change_set_name().unwrap())
            ),
            rule!(
                self,
                Cfn::execute_change_set,
                ExecuteChangeSetError,
                |state, input| { state.execute(input) }
            ),
            rule!(
                self,
                Cfn::delete_change_set,
                DeleteChangeSetError,
                |state, input| {
                    let arn = input.change_set_name().unwrap();
                    state.change_sets.retain(|set| set.arn != arn && set.name != arn);
                    Ok(DeleteChangeSetOutput::builder().build())
                }
            ),
            rule!(self, Cfn::describe_stacks, DescribeStacksError, |state, input| {
                state.describe(input.stack_name())
            }),
            rule!(self, Cfn::get_template, GetTemplateError, |state, input| {
                let name = input.stack_name().unwrap();
                let stack = state.named(name).ok_or_else(|| absent(name));
                stack.map(|stack| {
                    GetTemplateOutput::builder()
                        .template_body(stack.template.to_string())
                        .build()
                })
            }),
            rule!(
                self,
                Cfn::describe_stack_resources,
                DescribeStackResourcesError,
                |state, input| state.resources(input.stack_name(), input.physical_resource_id())
            ),
            always!(self, Cfn::describe_stack_events, |state, input| state
                .events(input.stack_name().unwrap())),
            always!(self, Cfn::list_change_sets, |state, _input| {
                let summaries = state.change_sets.iter();
                let summaries =
                    summaries.map(|set| ChangeSetSummary::builder().change_set_name(&set.name).build());
                ListChangeSetsOutput::builder()
                    .set_summaries(Some(summaries.collect()))
                    .build()
            }),
            always!(self, Cfn::list_stacks, |_state, _input| {
                ListStacksOutput::builder().build()
            }),
            always!(self, Cfn::continue_update_rollback, |_state, _input| {
                ContinueUpdateRollbackOutput::builder().build()
            }),
            always!(self, Cfn::detect_stack_resource_drift, |_state, _input| {
                let drift = StackResourceDrift::builder()
                    .stack_id(NAME)
                    .logical_resource_id(TABLE)
                    .resource_type("AWS::DynamoDB::Table")
                    .timestamp(DateTime::from_secs(1_790_000_000))
                    .stack_resource_drift_status(StackResourceDriftStatus::InSync);
                DetectStackResourceDriftOutput::builder()
                    .stack_resource_drift(drift.build())
                    .build()
            }),
        ]
    }

    fn dynamodb(&self) -> Vec<Rule> {
        let no_table = || meta("ResourceNotFoundException", "no such table");
        vec![
            rule!(
                self,
                DynamoDb::describe_table,
                DescribeTableError,
                |state, _input| {
                    let table = state.table.as_ref().ok_or_else(no_table);
                    table.map(|table| {
                        let mut described = fitting_table();
                        described.table_arn = Some(TABLE_ARN.to_owned());
                        described.deletion_protection_enabled = Some(table.protected);
                        DescribeTableOutput::builder().table(described).build()
                    })
                }
            ),
            always!(self, DynamoDb::update_table, |state, input| {
                if let (Some(table), Some(protected)) =
                    (state.table.as_mut(), input.deletion_protection_enabled())
                {
                    table.protected = protected;
                }
                UpdateTableOutput::builder().build()
            }),
            rule!(self, DynamoDb::delete_table, DeleteTableError, |state, _input| {
                match &state.table {
                    None => Err(no_table()),
                    Some(table) if table.protected => {
                        Err(meta("ValidationException", "the table has deletion protection"))
                    }
                    Some(_) => {
                        state.table = None;
                        Ok(DeleteTableOutput::builder().build())
                    }
                }
            }),
            always!(self, DynamoDb::list_tags_of_resource, |state, _input| {
                let tags = state.table.iter().flat_map(|table| &table.tags);
                let tags = tags.map(|(key, value)| {
                    let tag = aws_sdk_dynamodb::types::Tag::builder().key(key).value(value);
                    tag.build().unwrap()
                });
                ListTagsOfResourceOutput::builder()
                    .set_tags(Some(tags.collect()))
                    .build()
            }),
            always!(self, DynamoDb::tag_resource, |state, input| {
                if let Some(table) = &mut state.table {
                    let tags = input.tags().iter();
                    let tags = tags.map(|tag| (tag.key().to_owned(), tag.value().to_owned()));
                    table.tags.extend(tags);
                }
                TagResourceOutput::builder().build()
            }),
            always!(self, DynamoDb::untag_resource, |state, input| {
                if let Some(table) = &mut state.table {
                    table.tags.retain(|key, _| !input.tag_keys().contains(key));
                }
                UntagResourceOutput::builder().build()
            }),
        ]
    }

    /// Makes the next operation fail.
    pub(crate) fn fail_next(&self, fails: bool) {
        self.0.lock().unwrap().fails_next = fails;
    }

    /// Leaves an empty stack, as a process does that was killed after it created the first change set.
    pub(crate) fn leave_shell(&self) {
        let state = &mut *self.0.lock().unwrap();
        if state.stack.is_none() {
            let shell = state.shell();
            state.stack = Some(shell);
        }
    }

    /// Another process starts an update that changes only a tag.
    pub(crate) fn disturb(&self) {
        let state = &mut *self.0.lock().unwrap();
        let Some(stack) = state.stack.clone() else { return };
        if stack.updatable().is_err() {
            return;
        }
        let mut tags = stack.tags;
        let now = state.tick();
        tags.insert("team".to_owned(), now.to_string());
        let operation = state.operation(Work::Update {
            template: stack.template,
            tags,
        });
        let stack = state.stack.as_mut().unwrap();
        stack.updated_at = Some(now);
        stack.begin("UPDATE_IN_PROGRESS", Some("other"), operation);
        state.change_sets.clear();
    }

    pub(crate) fn status(&self) -> Option<String> {
        let state = self.0.lock().unwrap();
        state.stack.as_ref().map(|stack| stack.status.clone())
    }

    pub(crate) fn template(&self) -> Option<Value> {
        let state = self.0.lock().unwrap();
        state.stack.as_ref().map(|stack| stack.template.clone())
    }

    /// Whether the table exists, and whether it has deletion protection.
    pub(crate) fn protected(&self) -> Option<bool> {
        let state = self.0.lock().unwrap();
        state.table.as_ref().map(|table| table.protected)
    }

    /// Names of the change sets that exist now.
    pub(crate) fn change_sets(&self) -> Vec<String> {
        let state = self.0.lock().unwrap();
        state.change_sets.iter().map(|set| set.name.clone()).collect()
    }

    /// Names of all change sets that were ever created.
    pub(crate) fn names(&self) -> Vec<String> {
        self.0.lock().unwrap().names.clone()
    }

    /// Tables with data that a stack operation has deleted.
    pub(crate) fn lost(&self) -> usize {
        self.0.lock().unwrap().lost
    }
}
