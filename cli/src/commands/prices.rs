//! `prices`: manage what a resource costs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde::Serialize;
use zae_limiter::money::{MicroDollars, Prices};
use zae_limiter::{ConfigChange, ConfigLevel, LimitName, Repository, Resource};
use zae_limiter_limits::LiteLlmPrices;

use crate::command_output::{CommandOutput, Text, WithMessage};
use crate::confirm::confirm_by_name;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::output::{Align, TextTable, View};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Set the prices of a resource, replacing the current ones
    #[command(
        after_help = "Money is text such as '$2.50' or '2.5 usd'. Token prices are per million tokens.

Examples:
  zae-limiter prices set gpt-4o --input-price '$2.50' --output-price '$10' --max-output 16384
  zae-limiter prices set search --call-price '$0.01'
  zae-limiter prices set --system --input-price '$15' --output-price '$75'    # resources without their own"
    )]
    Set(Box<Set>),
    /// Show the prices of a resource
    #[command(after_help = "Examples:
  zae-limiter prices show gpt-4o
  zae-limiter prices show --system")]
    Show(LevelArgument),
    /// Delete the prices of a resource
    #[command(after_help = "Examples:
  zae-limiter prices delete gpt-4o
  zae-limiter prices delete gpt-4o --yes       # without a prompt")]
    Delete(Delete),
    /// Import prices from LiteLLM's model_prices_and_context_window.json
    #[command(
        after_help = "Download the file yourself. Costs that have no counterpart here, such as those of images, are listed \
and left out. The limits that count, and --default-output, stay as they are stored.

Examples:
  zae-limiter prices import model_prices_and_context_window.json --model gpt-4o --dry-run
  zae-limiter prices import prices.json --model gpt-4o --model anthropic.claude-3-haiku-20240307-v1:0=claude-3-haiku
  zae-limiter prices import prices.json --model gpt-4o --as-limits-file"
    )]
    Import(Import),
}

/// A resource, or the system.
#[derive(Debug, Args)]
#[group(id = "priced", required = true, multiple = false, args = ["resource", "system"])]
pub(crate) struct LevelArgument {
    /// Resource
    #[arg(value_name = "RESOURCE")]
    resource: Option<Resource>,
    /// All resources without prices of their own
    #[arg(long)]
    system: bool,
}

impl LevelArgument {
    fn level(self) -> ConfigLevel {
        self.resource.map_or(ConfigLevel::System, ConfigLevel::Resource)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Set {
    #[command(flatten)]
    level: LevelArgument,
    /// A million input tokens
    #[arg(long, value_name = "MONEY")]
    input_price: Option<MicroDollars>,
    /// A million output tokens
    #[arg(long, value_name = "MONEY")]
    output_price: Option<MicroDollars>,
    /// A million input tokens that are read from a cache [default: as --input-price]
    #[arg(long, value_name = "MONEY")]
    cached_input_price: Option<MicroDollars>,
    /// A million input tokens that are written to a cache [default: as --input-price]
    #[arg(long, value_name = "MONEY")]
    cache_write_price: Option<MicroDollars>,
    /// A call, besides its tokens
    #[arg(long, value_name = "MONEY")]
    call_price: Option<MicroDollars>,
    /// Output tokens expected of a request that does not limit them
    #[arg(long, value_name = "TOKENS")]
    default_output: Option<u64>,
    /// The most output tokens of the model
    #[arg(long, value_name = "TOKENS")]
    max_output: Option<u64>,
    /// Limit that counts money, in millionths of a dollar
    #[arg(long, value_name = "NAME", default_value = Prices::DEFAULT_MONEY_LIMIT)]
    money_limit: LimitName,
    /// Limit that counts tokens (repeatable)
    #[arg(long = "token-limit", value_name = "NAME", default_value = Prices::DEFAULT_TOKEN_LIMIT)]
    token_limits: Vec<LimitName>,
}

#[derive(Debug, Args)]
pub(crate) struct Delete {
    #[command(flatten)]
    level: LevelArgument,
    /// Skip the confirmation prompt
    #[arg(short, long)]
    yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Import {
    /// LiteLLM's file
    file: PathBuf,
    /// Model in the file, and the resource that gets its prices if it has another name (repeatable)
    #[arg(short, long = "model", value_name = "MODEL[=RESOURCE]", required = true)]
    models: Vec<ModelChoice>,
    /// Show the prices without storing them
    #[arg(long)]
    dry_run: bool,
    /// Print the prices as part of a limits file instead of storing them
    #[arg(long, conflicts_with = "dry_run")]
    as_limits_file: bool,
}

/// `MODEL[=RESOURCE]`.
#[derive(Debug, Clone)]
struct ModelChoice {
    model: String,
    resource: Resource,
}

impl std::str::FromStr for ModelChoice {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (model, resource) = text.rsplit_once('=').unwrap_or((text, text));
        let resource = Resource::parse(resource).map_err(|error| format!("{error}; write MODEL=RESOURCE"))?;
        Ok(Self {
            model: model.to_owned(),
            resource,
        })
    }
}

pub(crate) async fn run(command: Command, context: &Context) -> Result<CommandOutput> {
    match command {
        Command::Set(arguments) => set(*arguments, &context.repository().await?).await,
        Command::Show(argument) => {
            let level = argument.level();
            let stored = context.repository().await?.get_config(&level).await?;
            let prices = stored.and_then(|stored| stored.prices);
            Ok(CommandOutput::new(PricesReport::new(&level, prices)))
        }
        Command::Delete(arguments) => delete(arguments, context).await,
        Command::Import(arguments) => import(arguments, context).await,
    }
}

async fn set(arguments: Set, repository: &Repository) -> Result<CommandOutput> {
    let level = arguments.level.level();
    let prices = Prices {
        input: arguments.input_price,
        output: arguments.output_price,
        cached_input: arguments.cached_input_price,
        cache_write: arguments.cache_write_price,
        per_call: arguments.call_price,
        default_output: arguments.default_output,
        max_output: arguments.max_output,
        money_limit: arguments.money_limit,
        token_limits: arguments.token_limits.into_iter().collect(),
    };
    let change = ConfigChange::new().prices(prices);
    let record = repository.set_config(&level, change).await?;
    Ok(CommandOutput::new(WithMessage {
        message: format!("prices of {level}:"),
        report: PricesReport::new(&level, record.prices),
    }))
}

async fn delete(arguments: Delete, context: &Context) -> Result<CommandOutput> {
    let level = arguments.level.level();
    let name = level.resource_key().unwrap_or("system");
    confirm_by_name(&format!("delete the prices of {level}"), name, arguments.yes)?;
    let repository = context.repository().await?;
    let deleted = match &level {
        ConfigLevel::Resource(resource) => repository.delete_prices(resource).await?,
        level => {
            let stored = repository.get_config(level).await?;
            let has_prices = stored.is_some_and(|stored| stored.prices.is_some());
            if has_prices {
                let change = ConfigChange::new().without_prices();
                repository.set_config(level, change).await?;
            }
            has_prices
        }
    };
    Ok(CommandOutput::new(DeletionReport {
        level_text: level.to_string(),
        resource: level.resource_key().map(str::to_owned),
        deleted,
    }))
}

async fn import(arguments: Import, context: &Context) -> Result<CommandOutput> {
    let Import {
        file,
        models,
        dry_run,
        as_limits_file,
    } = arguments;
    let text = std::fs::read_to_string(&file).map_err(Error::reading(file.display().to_string()))?;
    let mut imported = parse(&file, &text, &models)?;
    if as_limits_file {
        return Ok(CommandOutput::document(limits_file(&imported)));
    }
    let repository = context.repository().await?;
    for import in &mut imported {
        if let Some(stored) = repository.get_prices(&import.resource).await? {
            import.prices.default_output = stored.default_output;
            import.prices.money_limit = stored.money_limit;
            import.prices.token_limits = stored.token_limits;
        }
    }
    if !dry_run {
        for import in &imported {
            repository
                .set_prices(&import.resource, import.prices.clone())
                .await?;
        }
    }
    Ok(CommandOutput::new(ImportReport {
        stored: !dry_run,
        resources: imported,
    }))
}

/// The prices of the chosen models. An error before anything is stored if one of them cannot be read.
fn parse(file: &Path, text: &str, models: &[ModelChoice]) -> Result<Vec<ImportedResource>> {
    let invalid = |mistakes| Error::Manifest {
        file: file.to_owned(),
        mistakes,
    };
    let prices = LiteLlmPrices::parse(text).map_err(|error| invalid(vec![error.to_string()]))?;
    let (mut imported, mut mistakes) = (BTreeMap::new(), vec![]);
    for ModelChoice { model, resource } in models {
        match prices.prices(model) {
            Ok(found) => {
                let import = ImportedResource {
                    model: model.clone(),
                    resource: resource.clone(),
                    prices: found.prices,
                    left_out: found.left_out,
                };
                if imported.insert(resource, import).is_some() {
                    mistakes.push(format!("resource {resource} would get the prices of two models"));
                }
            }
            Err(error) => mistakes.push(error.to_string()),
        }
    }
    if mistakes.is_empty() {
        Ok(imported.into_values().collect())
    } else {
        Err(invalid(mistakes))
    }
}

/// The prices as part of a limits file. The limits that count are left to its defaults.
fn limits_file(imported: &[ImportedResource]) -> String {
    let mut lines = vec!["resources:".to_owned()];
    for import in imported {
        lines.push(format!("  \"{}\":", import.resource));
        lines.push("    prices:".to_owned());
        let fields = import.prices.fields().into_iter();
        let fields = fields.filter(|(name, _)| !["money_limit", "token_limits"].contains(name));
        lines.extend(fields.map(|(name, value)| format!("      {name}: {value}")));
        for field in &import.left_out {
            lines.push(format!("      # left out: {field}"));
        }
    }
    lines.join("\n") + "\n"
}

#[derive(Debug, Serialize)]
struct PricesReport {
    #[serde(skip)]
    level_text: String,
    /// None for the system.
    resource: Option<String>,
    prices: Option<Prices>,
}

impl PricesReport {
    fn new(level: &ConfigLevel, prices: Option<Prices>) -> Self {
        Self {
            level_text: level.to_string(),
            resource: level.resource_key().map(str::to_owned),
            prices,
        }
    }
}

impl Text for PricesReport {
    fn text(&self, _: &View) -> String {
        let Some(prices) = &self.prices else {
            return format!("no prices are set for {}", self.level_text);
        };
        let fields = prices.fields().into_iter();
        let lines: Vec<_> = fields.map(|(name, value)| format!("{name}: {value}")).collect();
        lines.join("\n")
    }
}

#[derive(Debug, Serialize)]
struct DeletionReport {
    #[serde(skip)]
    level_text: String,
    resource: Option<String>,
    deleted: bool,
}

impl Text for DeletionReport {
    fn text(&self, _: &View) -> String {
        if self.deleted {
            format!("deleted the prices of {}", self.level_text)
        } else {
            format!("nothing to delete: {} has no prices", self.level_text)
        }
    }
}

#[derive(Debug, Serialize)]
struct ImportReport {
    stored: bool,
    resources: Vec<ImportedResource>,
}

#[derive(Debug, Serialize)]
struct ImportedResource {
    model: String,
    resource: Resource,
    prices: Prices,
    /// Costs of the model that have no counterpart here.
    left_out: Vec<String>,
}

impl Text for ImportReport {
    fn text(&self, view: &View) -> String {
        let mut table = TextTable::new([
            ("Resource", Align::Left),
            ("Model", Align::Left),
            ("Input", Align::Right),
            ("Output", Align::Right),
            ("Cached", Align::Right),
            ("Cache write", Align::Right),
            ("Call", Align::Right),
            ("Max output", Align::Right),
        ]);
        let money = |price: Option<MicroDollars>| price.map_or("-".to_owned(), |price| price.to_string());
        for ImportedResource {
            model,
            resource,
            prices,
            ..
        } in &self.resources
        {
            table.row([
                resource.to_string(),
                model.clone(),
                money(prices.input),
                money(prices.output),
                money(prices.cached_input),
                money(prices.cache_write),
                money(prices.per_call),
                prices
                    .max_output
                    .map_or("-".to_owned(), |tokens| tokens.to_string()),
            ]);
        }
        let mut lines = vec![table.render(view)];
        for import in self.resources.iter().filter(|import| !import.left_out.is_empty()) {
            lines.push(format!(
                "{}: left out {}",
                import.resource,
                import.left_out.join(", ")
            ));
        }
        lines.push(if self.stored {
            "stored; token prices are per million".to_owned()
        } else {
            "not stored; token prices are per million".to_owned()
        });
        lines.join("\n")
    }
}
