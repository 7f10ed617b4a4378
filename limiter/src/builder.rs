//! How a limiter is set up.

use std::collections::BTreeSet;
use std::future::{Future, IntoFuture};
use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use aws_config::SdkConfig;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use aws_smithy_runtime_api::client::http::{HttpClient, SharedHttpClient};
use zae_limiter_dynamo::{CapacityMeter, Entropy};
use zae_limiter_schema::bucket::TtlRule;
use zae_limiter_schema::{ConfigRecord, Limit, OnUnavailable, Principal, Resource, StackName};

use crate::admin::{Repository, Setup, limit_set};
use crate::config::cache::CacheLimits;
use crate::config::resolution::Defaults;
use crate::store::connect::{AwsSettings, Connection, check_length};
use crate::{Clock, Error, RateLimiter, Result, SystemClock};

/// Settings of a [`RateLimiter`]. Every one has a default; [`build`](Builder::build) or `.await` connects.
///
/// ```
/// use std::time::Duration;
/// use zae_limiter::{Limit, RateLimiter};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> zae_limiter::Result<()> {
/// let limiter = RateLimiter::embedded()
///     .default_limits([Limit::per_minute("rpm", 100)?])
///     .config_cache_ttl(Duration::from_secs(10))
///     .await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct Builder {
    name: String,
    connection: Connection,
    create_table: bool,
    /// The first setting that does not apply to the connection.
    misplaced: Option<&'static str>,
    limits: Vec<Limit>,
    on_unavailable: OnUnavailable,
    principal: Option<String>,
    meter: Option<CapacityMeter>,
    settings: Settings,
    #[cfg(feature = "stack")]
    stack: Option<crate::StackSetup>,
    admin_budget: Duration,
    cache: CacheLimits,
    clock: Arc<dyn Clock>,
    entropy: Entropy,
}

/// Settings of the acquire path.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// How long an acquire may take in all.
    pub(crate) time_budget: Duration,
    /// How long an adjustment or refund is retried.
    pub(crate) settle_budget: Duration,
    /// How long a refusal is remembered.
    pub(crate) memory: Duration,
    /// The time to live of a bucket on default limits, in refill times; 0 is no expiry.
    pub(crate) ttl_multiplier: u32,
    /// The number of processes that share the limits during an outage.
    pub(crate) processes: Option<NonZeroU32>,
    /// Refuses tables of another version, where nothing is stored about it.
    pub(crate) strict_version: bool,
    /// Replaces the code of deployed functions, where nothing is stored about it.
    #[cfg(feature = "stack")]
    pub(crate) auto_update: bool,
    /// Where tokens are taken in chunks.
    pub(crate) chunks: ChunkScope,
    /// A rule of the protocol that is broken on purpose.
    #[cfg(test)]
    pub(crate) mutation: Option<crate::simulation::Mutation>,
}

/// The resources on whose buckets tokens are taken in chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChunkScope {
    /// These; none unless set.
    Resources(BTreeSet<String>),
    /// All.
    Everywhere,
}

impl Default for ChunkScope {
    fn default() -> Self {
        Self::Resources(BTreeSet::new())
    }
}

impl ChunkScope {
    pub(crate) fn allows(&self, resource: &Resource) -> bool {
        match self {
            Self::Resources(names) => names.contains(resource.as_str()),
            Self::Everywhere => true,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            time_budget: Duration::from_secs(1),
            settle_budget: Duration::from_secs(30),
            memory: Duration::from_secs(1),
            ttl_multiplier: TtlRule::DEFAULT_MULTIPLIER,
            processes: None,
            strict_version: true,
            #[cfg(feature = "stack")]
            auto_update: true,
            chunks: ChunkScope::default(),
            #[cfg(test)]
            mutation: None,
        }
    }
}

impl Settings {
    /// What the system configuration says about tables of another version, or else this.
    pub(crate) fn is_strict(&self, system: Option<&ConfigRecord>) -> bool {
        let stored = system.and_then(|config| config.system.strict_version);
        stored.unwrap_or(self.strict_version)
    }
}

impl Builder {
    pub(crate) fn new(name: &str, connection: Connection) -> Self {
        Self {
            name: name.to_owned(),
            create_table: connection.creates_table(),
            connection,
            misplaced: None,
            limits: vec![],
            on_unavailable: OnUnavailable::Block,
            principal: None,
            meter: None,
            settings: Settings::default(),
            #[cfg(feature = "stack")]
            stack: None,
            admin_budget: Duration::from_secs(10),
            cache: CacheLimits {
                ttl: Duration::from_mins(1),
                entries: 10_000,
            },
            clock: Arc::new(SystemClock::new()),
            entropy: Entropy::from_system(),
        }
    }

    /// Sets something about AWS. An embedded store has nothing of that, and building one with it is an error.
    #[cfg_attr(not(feature = "embedded"), allow(irrefutable_let_patterns))]
    fn aws(mut self, field: &'static str, set: impl FnOnce(&mut AwsSettings)) -> Self {
        if let Connection::Aws(settings) = &mut self.connection {
            set(settings);
        } else {
            self.misplaced.get_or_insert(field);
        }
        self
    }

    /// The AWS region. Otherwise from `AWS_REGION`, the profile or the instance.
    pub fn region(self, region: impl AsRef<str>) -> Self {
        self.aws("region", |aws| aws.region = Some(region.as_ref().to_owned()))
    }

    /// Another endpoint than AWS's, such as a local DynamoDB. Otherwise from `AWS_ENDPOINT_URL` and the profile.
    pub fn endpoint_url(self, url: impl AsRef<str>) -> Self {
        self.aws("endpoint_url", |aws| {
            aws.endpoint_url = Some(url.as_ref().to_owned());
        })
    }

    /// Credentials, or where to get them. Otherwise from the environment, the profile or the instance.
    pub fn credentials(self, provider: impl ProvideCredentials + 'static) -> Self {
        self.aws("credentials", |aws| {
            aws.credentials = Some(SharedCredentialsProvider::new(provider));
        })
    }

    /// A profile of the shared AWS configuration files. Not beside [`sdk_config`](Self::sdk_config), which has one.
    pub fn profile(self, name: impl AsRef<str>) -> Self {
        self.aws("profile", |aws| aws.profile = Some(name.as_ref().to_owned()))
    }

    /// The SDK configuration of the application. Region, endpoint and credentials that are set on this builder override
    /// it.
    pub fn sdk_config(self, config: SdkConfig) -> Self {
        self.aws("sdk_config", |aws| aws.sdk_config = Some(config))
    }

    /// How long opening a connection may take. The default is one second.
    pub fn connect_timeout(self, timeout: Duration) -> Self {
        self.aws("connect_timeout", |aws| aws.connect_timeout = Some(timeout))
    }

    /// An HTTP client of the application's, for proxies, own certificates, or tests with faults.
    pub fn http_client(self, client: impl HttpClient + 'static) -> Self {
        self.aws("http_client", |aws| {
            aws.http_client = Some(SharedHttpClient::new(client));
        })
    }

    /// Whether to create the table if it is missing. For local endpoints: on AWS, a stack creates the table. Embedded
    /// stores create it unless this is set to false.
    pub fn create_table(mut self, create: bool) -> Self {
        self.create_table = create;
        self
    }

    /// Another name for the table of an embedded store, which is `limiter` otherwise.
    pub fn name(mut self, name: impl AsRef<str>) -> Self {
        name.as_ref().clone_into(&mut self.name);
        self
    }

    /// The limits that apply where no level has any: at most [`MAX_LIMITS`](crate::MAX_LIMITS).
    pub fn default_limits(mut self, limits: impl IntoIterator<Item = Limit>) -> Self {
        self.limits = limits.into_iter().collect();
        self
    }

    /// The policy for outages at the lowest precedence: a stored policy overrides it. The default is to block.
    pub fn on_unavailable(mut self, policy: OnUnavailable) -> Self {
        self.on_unavailable = policy;
        self
    }

    /// Whether an incompatible version of the table is an error (the default) or a warning. The system configuration
    /// overrides it.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> zae_limiter::Result<()> {
    /// // Warns about a table of another version, and goes on.
    /// let limiter = zae_limiter::RateLimiter::embedded().strict_version(false).await?;
    /// # Ok(()) }
    /// ```
    pub fn strict_version(mut self, strict: bool) -> Self {
        self.settings.strict_version = strict;
        self
    }

    /// Whether [`RateLimiter::ensure_infrastructure`] may replace the code of deployed functions. The default is true, and
    /// the system configuration overrides it.
    #[cfg(feature = "stack")]
    pub fn auto_update(mut self, update: bool) -> Self {
        self.settings.auto_update = update;
        self
    }

    /// The principal that audit events name. The default is the ARN of the AWS credentials.
    pub fn principal(mut self, principal: impl AsRef<str>) -> Self {
        self.principal = Some(principal.as_ref().to_owned());
        self
    }

    /// Counts calls and consumed capacity. Without a meter, DynamoDB is not asked to report capacity.
    pub fn meter(mut self, meter: CapacityMeter) -> Self {
        self.meter = Some(meter);
        self
    }

    /// How long an acquire may take, retries included. The default is one second.
    pub fn time_budget(mut self, budget: Duration) -> Self {
        self.settings.time_budget = budget;
        self
    }

    /// How long adjustments and refunds are retried before they are reported as unwritten. The default is 30 seconds.
    pub fn settle_budget(mut self, budget: Duration) -> Self {
        self.settings.settle_budget = budget;
        self
    }

    /// How long a refusal is remembered. For this time after a bucket was read, requests for at least the amount that
    /// it could not cover are refused without a call to the table. The default is one second.
    pub fn rejection_memory(mut self, time: Duration) -> Self {
        self.settings.memory = time;
        self
    }

    /// How long an unused bucket lives at least, as a multiple of the time that an empty bucket takes to fill to its
    /// burst: 7 unless set, and 0 for no expiry. Debt lengthens the life to twice the time until the bucket is full.
    /// Applies to buckets on default limits; a bucket whose entity has limits of its own never expires.
    pub fn bucket_ttl_refill_multiplier(mut self, multiplier: u32) -> Self {
        self.settings.ttl_multiplier = multiplier;
        self
    }

    /// Limits what this process admits during an outage under the policy
    /// [`OnUnavailable::Allow`](crate::OnUnavailable::Allow): to one part in `processes` of every limit, both of its
    /// burst and of its refill. Unless set, every call is admitted during an outage.
    ///
    /// If `processes` is the real number of processes, then together they admit what the limits allow, plus at most one
    /// more burst at the start of the outage, because what was left in the table is unknown. The limits are the last
    /// ones that the process read (see [`config_cache_entries`](Self::config_cache_entries)), or the builder's
    /// [`default_limits`](Self::default_limits); a call without known limits is blocked. The table never counts what is
    /// admitted this way, and [`Lease::admission`](crate::Lease::admission) says so.
    pub fn share_while_unavailable(mut self, processes: NonZeroU32) -> Self {
        self.settings.processes = Some(processes);
        self
    }

    /// Takes tokens in chunks on all buckets. On a bucket with a steady rate of calls, the process takes the tokens of up to
    /// one second of calls ahead, with one write, and admits calls from memory. The default is off; see also
    /// [`token_chunks_on`](Self::token_chunks_on).
    ///
    /// For buckets with more traffic than one DynamoDB item takes writes, which is 1,000 a second. In all, no more is
    /// admitted than the limits allow; over an interval, at most the tokens in hand when it began, which
    /// [`LimiterStats::chunk_tokens`](crate::LimiterStats::chunk_tokens) shows. Chunks shrink near the limit, and go back when
    /// they are not used and by [`RateLimiter::shutdown`]. A process that crashes leaves its chunk taken, until the bucket has
    /// refilled.
    pub fn token_chunks(mut self) -> Self {
        self.settings.chunks = ChunkScope::Everywhere;
        self
    }

    /// Takes tokens in chunks on the buckets of this resource, as [`token_chunks`](Self::token_chunks) does on all.
    pub fn token_chunks_on(mut self, resource: impl AsRef<str>) -> Self {
        if let ChunkScope::Resources(names) = &mut self.settings.chunks {
            names.insert(resource.as_ref().to_owned());
        }
        self
    }

    /// How long a call of the [`Repository`](crate::Repository) may take, retries included. The default is ten seconds.
    pub fn admin_time_budget(mut self, budget: Duration) -> Self {
        self.admin_budget = budget;
        self
    }

    /// How long configuration is cached. The default is 60 seconds; zero turns the cache off.
    pub fn config_cache_ttl(mut self, ttl: Duration) -> Self {
        self.cache.ttl = ttl;
        self
    }

    /// How many pairs of entity and resource the configuration cache holds. The default is 10,000.
    pub fn config_cache_entries(mut self, entries: usize) -> Self {
        self.cache.entries = entries;
        self
    }

    /// Declares the stack of this limiter, which [`RateLimiter::ensure_infrastructure`] brings about.
    ///
    /// ```no_run
    /// use zae_limiter::RateLimiter;
    /// use zae_limiter::stack::StackOptions;
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = RateLimiter::builder("my-app").stack(StackOptions::builder().lambda_memory(512).build()?).await?;
    /// limiter.ensure_infrastructure().await?;
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "stack")]
    pub fn stack(mut self, setup: impl Into<crate::StackSetup>) -> Self {
        self.stack = Some(setup.into());
        self
    }

    /// Replaces the system clock.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Seeds the random numbers (jitter, ids), for reproducible tests.
    pub fn seed(mut self, seed: u64) -> Self {
        self.entropy = Entropy::seeded(seed);
        self
    }

    /// Checks the settings and connects. Only an embedded store, or [`create_table`](Self::create_table), accesses
    /// the table here.
    pub async fn build(self) -> Result<RateLimiter> {
        Ok(RateLimiter::over(self.build_repository().await?))
    }

    /// The same without a limiter, for programs that only manage what is stored. [`RateLimiter::over`] makes a limiter
    /// of it later.
    ///
    /// ```no_run
    /// # async fn example() -> zae_limiter::Result<()> {
    /// let config = aws_config::load_from_env().await;
    /// let repository = zae_limiter::RateLimiter::builder("my-app").sdk_config(config).build_repository().await?;
    /// println!("{:?}", repository.version().await?);
    /// # Ok(()) }
    /// ```
    pub async fn build_repository(self) -> Result<Repository> {
        self.check()?;
        let name = StackName::parse(&self.name)?;
        let limits = limit_set("default limits", self.limits)?;
        let setup = Setup {
            name,
            defaults: Defaults {
                limits,
                on_unavailable: self.on_unavailable,
            },
            principal: self.principal.map(Principal::parse).transpose()?,
            // Boxed, as all that calls the SDK: its futures are deeply nested.
            connected: Box::pin(self.connection.open(self.meter)).await?,
            settings: self.settings,
            #[cfg(feature = "stack")]
            stack: self.stack,
            admin_budget: self.admin_budget,
            cache: self.cache,
            clock: self.clock,
            entropy: Arc::new(self.entropy),
        };
        let repository = Repository::new(setup);
        if self.create_table {
            repository.create_table().await?;
        }
        Ok(repository)
    }

    /// Refuses settings that have no meaning, before anything is opened.
    fn check(&self) -> Result<()> {
        if let Some(field) = self.misplaced {
            return Err(Error::invalid(
                field,
                "",
                "it does not apply to an embedded store; leave it out",
            ));
        }
        self.connection.check()?;
        if let ChunkScope::Resources(names) = &self.settings.chunks {
            names
                .iter()
                .try_for_each(|name| Resource::parse(name).map(drop))?;
        }
        let budgets = [
            ("time_budget", self.settings.time_budget),
            ("admin_time_budget", self.admin_budget),
        ];
        for (field, value) in budgets {
            if value.is_zero() {
                return Err(Error::invalid(field, "0", "it must be greater than zero"));
            }
        }
        let times = [
            ("settle_budget", self.settings.settle_budget),
            ("rejection_memory", self.settings.memory),
            ("config_cache_ttl", self.cache.ttl),
        ];
        for (field, value) in budgets.into_iter().chain(times) {
            check_length(field, value)?;
        }
        Ok(())
    }
}

impl IntoFuture for Builder {
    type Output = Result<RateLimiter>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<RateLimiter>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.build())
    }
}
