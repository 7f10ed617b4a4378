variable "name" {
  description = "Name of the table. The names of all other resources start with it."
  type        = string

  validation {
    condition     = can(regex("^[A-Za-z][A-Za-z0-9-]{2,54}$", var.name))
    error_message = "name must start with a letter and have 3 to 55 letters, digits and hyphens."
  }
}

variable "snapshot_windows" {
  description = "Usage windows that the aggregator fills: `hourly`, `daily`, `monthly`."
  type        = list(string)
  default     = ["hourly", "daily"]
  nullable    = false

  validation {
    condition     = length(var.snapshot_windows) > 0 && alltrue([for window in var.snapshot_windows : contains(["hourly", "daily", "monthly"], window)])
    error_message = "snapshot_windows must be one or more of hourly, daily, monthly."
  }
}

variable "usage_retention_days" {
  description = "Days to keep a usage snapshot after its window has ended."
  type        = number
  default     = 90
  nullable    = false

  validation {
    condition     = var.usage_retention_days >= 1 && var.usage_retention_days <= 3650 && floor(var.usage_retention_days) == var.usage_retention_days
    error_message = "usage_retention_days must be a whole number between 1 and 3650."
  }
}

variable "audit_retention_days" {
  description = "Days to keep an audit event in the table."
  type        = number
  default     = 90
  nullable    = false

  validation {
    condition     = var.audit_retention_days >= 1 && var.audit_retention_days <= 3650 && floor(var.audit_retention_days) == var.audit_retention_days
    error_message = "audit_retention_days must be a whole number between 1 and 3650."
  }
}

variable "enable_aggregator" {
  description = "Whether the stack has the aggregator, which counts usage."
  type        = bool
  default     = true
  nullable    = false
}

variable "aggregator_parallelization" {
  description = "Concurrent batches per shard for the aggregator, 1 to 10."
  type        = number
  default     = 1
  nullable    = false

  validation {
    condition     = var.aggregator_parallelization >= 1 && var.aggregator_parallelization <= 10 && floor(var.aggregator_parallelization) == var.aggregator_parallelization
    error_message = "aggregator_parallelization must be a whole number between 1 and 10."
  }
}

variable "event_bus" {
  description = "Name of the `EventBridge` bus that gets an event when a quota reaches a threshold, such as `default`. Default: none."
  type        = string
  default     = null

  validation {
    condition     = var.event_bus == null ? true : (can(regex("^[A-Za-z0-9._-]{1,256}$", var.event_bus)))
    error_message = "event_bus must match ^[A-Za-z0-9._-]{1,256}$."
  }
}

variable "stream_start" {
  description = "Where new event source mappings start: `trim_horizon`, or `latest` for an adopted table."
  type        = string
  default     = "trim_horizon"
  nullable    = false

  validation {
    condition     = contains(["trim_horizon", "latest"], var.stream_start)
    error_message = "stream_start must be one of trim_horizon, latest."
  }
}

variable "gsi2_projection" {
  description = "What the index by resource copies: `keys`, or `all` at twice the write cost."
  type        = string
  default     = "keys"
  nullable    = false

  validation {
    condition     = contains(["keys", "all"], var.gsi2_projection)
    error_message = "gsi2_projection must be one of keys, all."
  }
}

variable "table_class" {
  description = "Storage class of the table: `standard`, or `infrequent_access` for cheaper storage and dearer requests."
  type        = string
  default     = "standard"
  nullable    = false

  validation {
    condition     = contains(["standard", "infrequent_access"], var.table_class)
    error_message = "table_class must be one of standard, infrequent_access."
  }
}

variable "max_read_request_units" {
  description = "Most read request units per second of the table and of each index, which bounds the cost. Default: no limit."
  type        = number
  default     = null

  validation {
    condition     = var.max_read_request_units == null ? true : (var.max_read_request_units >= 1 && var.max_read_request_units <= 10000000 && floor(var.max_read_request_units) == var.max_read_request_units)
    error_message = "max_read_request_units must be a whole number between 1 and 10000000."
  }
}

variable "max_write_request_units" {
  description = "Most write request units per second of the table and of each index, which bounds the cost. Default: no limit."
  type        = number
  default     = null

  validation {
    condition     = var.max_write_request_units == null ? true : (var.max_write_request_units >= 1 && var.max_write_request_units <= 10000000 && floor(var.max_write_request_units) == var.max_write_request_units)
    error_message = "max_write_request_units must be a whole number between 1 and 10000000."
  }
}

variable "pitr_recovery_days" {
  description = "Days of point-in-time recovery, 1 to 35. Default: 35, as AWS sets it."
  type        = number
  default     = null

  validation {
    condition     = var.pitr_recovery_days == null ? true : (var.pitr_recovery_days >= 1 && var.pitr_recovery_days <= 35 && floor(var.pitr_recovery_days) == var.pitr_recovery_days)
    error_message = "pitr_recovery_days must be a whole number between 1 and 35."
  }
}

variable "enable_deletion_protection" {
  description = "Whether the table refuses to be deleted."
  type        = bool
  default     = false
  nullable    = false
}

variable "enable_contributor_insights" {
  description = "Whether `DynamoDB` reports the most accessed keys; use it for parents with more than 500 children."
  type        = bool
  default     = false
  nullable    = false
}

variable "kms_key_arn" {
  description = "ARN of a KMS key for the table, queues, logs and archive. Default: AWS owned keys."
  type        = string
  default     = null

  validation {
    condition     = var.kms_key_arn == null ? true : (can(regex("^arn:aws(-[a-z-]+)?:kms:[!-9;-~]+:[0-9]{12}:key/[!-~]+$", var.kms_key_arn)))
    error_message = "kms_key_arn must match ^arn:aws(-[a-z-]+)?:kms:[!-9;-~]+:[0-9]{12}:key/[!-~]+$."
  }
}

variable "log_retention_days" {
  description = "Days to keep the functions' logs."
  type        = number
  default     = 30
  nullable    = false

  validation {
    condition     = contains([1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653], var.log_retention_days)
    error_message = "log_retention_days must be one of 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653."
  }
}

variable "lambda_timeout" {
  description = "Timeout of a function, in seconds."
  type        = number
  default     = 60
  nullable    = false

  validation {
    condition     = var.lambda_timeout >= 1 && var.lambda_timeout <= 900 && floor(var.lambda_timeout) == var.lambda_timeout
    error_message = "lambda_timeout must be a whole number between 1 and 900."
  }
}

variable "lambda_memory" {
  description = "Memory of a function, in megabytes."
  type        = number
  default     = 256
  nullable    = false

  validation {
    condition     = var.lambda_memory >= 128 && var.lambda_memory <= 3008 && floor(var.lambda_memory) == var.lambda_memory
    error_message = "lambda_memory must be a whole number between 128 and 3008."
  }
}

variable "lambda_architecture" {
  description = "Processor of the functions: `x86_64` or `arm64`."
  type        = string
  default     = "x86_64"
  nullable    = false

  validation {
    condition     = contains(["x86_64", "arm64"], var.lambda_architecture)
    error_message = "lambda_architecture must be one of x86_64, arm64."
  }
}

variable "lambda_reserved_concurrency" {
  description = "Reserved concurrent executions of each function. Default: none."
  type        = number
  default     = null

  validation {
    condition     = var.lambda_reserved_concurrency == null ? true : (var.lambda_reserved_concurrency >= 1 && var.lambda_reserved_concurrency <= 10000 && floor(var.lambda_reserved_concurrency) == var.lambda_reserved_concurrency)
    error_message = "lambda_reserved_concurrency must be a whole number between 1 and 10000."
  }
}

variable "lambda_subnet_ids" {
  description = "Subnets of the functions, in one VPC that reaches the AWS services in use."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = length(var.lambda_subnet_ids) <= 16 && alltrue([for id in var.lambda_subnet_ids : can(regex("^subnet-[0-9a-f]{8,17}$", id))])
    error_message = "lambda_subnet_ids must be at most 16 ids of subnets."
  }
}

variable "lambda_security_group_ids" {
  description = "Security groups of the functions, with `lambda_subnet_ids`."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = length(var.lambda_security_group_ids) <= 16 && alltrue([for id in var.lambda_security_group_ids : can(regex("^sg-[0-9a-f]{8,17}$", id))])
    error_message = "lambda_security_group_ids must be at most 16 ids of security groups."
  }
}

variable "enable_tracing" {
  description = "Whether the functions are traced with X-Ray."
  type        = bool
  default     = false
  nullable    = false
}

variable "enable_alarms" {
  description = "Whether the stack has alarms."
  type        = bool
  default     = true
  nullable    = false
}

variable "alarm_sns_topic" {
  description = "ARN of the SNS topic that every alarm notifies. Default: none."
  type        = string
  default     = null

  validation {
    condition     = var.alarm_sns_topic == null ? true : (can(regex("^arn:aws(-[a-z-]+)?:sns:[!-9;-~]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}$", var.alarm_sns_topic)))
    error_message = "alarm_sns_topic must match ^arn:aws(-[a-z-]+)?:sns:[!-9;-~]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}$."
  }
}

variable "lambda_duration_threshold_pct" {
  description = "Average duration that raises an alarm, as a percentage of the timeout."
  type        = number
  default     = 80
  nullable    = false

  validation {
    condition     = var.lambda_duration_threshold_pct >= 1 && var.lambda_duration_threshold_pct <= 100 && floor(var.lambda_duration_threshold_pct) == var.lambda_duration_threshold_pct
    error_message = "lambda_duration_threshold_pct must be a whole number between 1 and 100."
  }
}

variable "alarm_error_rate_pct" {
  description = "Percentage of failed invocations above which an alarm is raised."
  type        = number
  default     = 1
  nullable    = false

  validation {
    condition     = var.alarm_error_rate_pct >= 0 && var.alarm_error_rate_pct <= 99 && floor(var.alarm_error_rate_pct) == var.alarm_error_rate_pct
    error_message = "alarm_error_rate_pct must be a whole number between 0 and 99."
  }
}

variable "alarm_iterator_age_seconds" {
  description = "Lag behind the table, in seconds, above which an alarm is raised."
  type        = number
  default     = 30
  nullable    = false

  validation {
    condition     = var.alarm_iterator_age_seconds >= 1 && var.alarm_iterator_age_seconds <= 79200 && floor(var.alarm_iterator_age_seconds) == var.alarm_iterator_age_seconds
    error_message = "alarm_iterator_age_seconds must be a whole number between 1 and 79200."
  }
}

variable "alarm_throttled_requests" {
  description = "Throttled requests in five minutes, of the table or an index, above which an alarm is raised."
  type        = number
  default     = 1
  nullable    = false

  validation {
    condition     = var.alarm_throttled_requests >= 0 && var.alarm_throttled_requests <= 1000000 && floor(var.alarm_throttled_requests) == var.alarm_throttled_requests
    error_message = "alarm_throttled_requests must be a whole number between 0 and 1000000."
  }
}

variable "enable_dashboard" {
  description = "Whether the stack has a CloudWatch dashboard."
  type        = bool
  default     = false
  nullable    = false
}

variable "create_iam" {
  description = "Whether the stack has managed policies, and roles for its functions."
  type        = bool
  default     = true
  nullable    = false
}

variable "create_iam_roles" {
  description = "Whether the stack also has roles for applications, administrators and readers."
  type        = bool
  default     = false
  nullable    = false
}

variable "trusted_accounts" {
  description = "Other accounts whose roles may assume the role for applications, for access across accounts."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = length(var.trusted_accounts) <= 16 && alltrue([for account in var.trusted_accounts : can(regex("^[0-9]{12}$", account))])
    error_message = "trusted_accounts must be at most 16 accounts of 12 digits."
  }
}

variable "iam_path" {
  description = "Path of every role and managed policy, such as `/limiter/`. Default: `/`."
  type        = string
  default     = null

  validation {
    condition     = var.iam_path == null ? true : (can(regex("^/([A-Za-z0-9+=,.@_-]+/)+$", var.iam_path)) && length(var.iam_path) <= 512)
    error_message = "iam_path must match ^/([A-Za-z0-9+=,.@_-]+/)+$ and have at most 512 characters."
  }
}

variable "permission_boundary" {
  description = "Name or ARN of the managed policy that is the permissions boundary of every role. Default: none."
  type        = string
  default     = null

  validation {
    condition     = var.permission_boundary == null ? true : (can(regex("^(arn:aws(-[a-z-]+)?:iam:[!-9;-~]*:([0-9]{12}|aws):policy/[!-~]+|[A-Za-z0-9+=,.@_-]+(/[A-Za-z0-9+=,.@_-]+)*)$", var.permission_boundary)))
    error_message = "permission_boundary must match ^(arn:aws(-[a-z-]+)?:iam:[!-9;-~]*:([0-9]{12}|aws):policy/[!-~]+|[A-Za-z0-9+=,.@_-]+(/[A-Za-z0-9+=,.@_-]+)*)$."
  }
}

variable "role_name_format" {
  description = "Format of role names, with `{}` in place of `{stack}-{component}`. Default: `{}`."
  type        = string
  default     = null

  validation {
    condition     = var.role_name_format == null ? true : (can(regex("^[A-Za-z0-9+=,.@_-]*[{][}][A-Za-z0-9+=,.@_-]*$", var.role_name_format)) && length(var.role_name_format) <= 55)
    error_message = "role_name_format must match ^[A-Za-z0-9+=,.@_-]*[{][}][A-Za-z0-9+=,.@_-]*$ and have at most 55 characters."
  }
}

variable "policy_name_format" {
  description = "Format of policy names, with `{}` in place of `{stack}-{component}`. Default: `{}`."
  type        = string
  default     = null

  validation {
    condition     = var.policy_name_format == null ? true : (can(regex("^[A-Za-z0-9+=,.@_-]*[{][}][A-Za-z0-9+=,.@_-]*$", var.policy_name_format)) && length(var.policy_name_format) <= 122)
    error_message = "policy_name_format must match ^[A-Za-z0-9+=,.@_-]*[{][}][A-Za-z0-9+=,.@_-]*$ and have at most 122 characters."
  }
}

variable "regional_iam_names" {
  description = "Whether role and policy names include the region, so that one stack name works in several."
  type        = bool
  default     = false
  nullable    = false
}

variable "acquire_policy" {
  description = "How narrow the acquire policy is: limited to `keys`, or to `attributes` as well."
  type        = string
  default     = "keys"
  nullable    = false

  validation {
    condition     = contains(["keys", "attributes"], var.acquire_policy)
    error_message = "acquire_policy must be one of keys, attributes."
  }
}

variable "aggregator_role_arn" {
  description = "ARN of an existing role for the aggregator. Default: a role of the stack."
  type        = string
  default     = null

  validation {
    condition     = var.aggregator_role_arn == null ? true : (can(regex("^arn:aws(-[a-z-]+)?:iam::[0-9]{12}:role/[!-~]+$", var.aggregator_role_arn)))
    error_message = "aggregator_role_arn must match ^arn:aws(-[a-z-]+)?:iam::[0-9]{12}:role/[!-~]+$."
  }
}

variable "archiver_role_arn" {
  description = "ARN of an existing role for the archiver. Default: a role of the stack."
  type        = string
  default     = null

  validation {
    condition     = var.archiver_role_arn == null ? true : (can(regex("^arn:aws(-[a-z-]+)?:iam::[0-9]{12}:role/[!-~]+$", var.archiver_role_arn)))
    error_message = "archiver_role_arn must match ^arn:aws(-[a-z-]+)?:iam::[0-9]{12}:role/[!-~]+$."
  }
}

variable "enable_audit_archival" {
  description = "Whether audit events are archived in S3."
  type        = bool
  default     = true
  nullable    = false
}

variable "audit_archive_glacier_days" {
  description = "Days until archived events move to Glacier Instant Retrieval."
  type        = number
  default     = 90
  nullable    = false

  validation {
    condition     = var.audit_archive_glacier_days >= 1 && var.audit_archive_glacier_days <= 3650 && floor(var.audit_archive_glacier_days) == var.audit_archive_glacier_days
    error_message = "audit_archive_glacier_days must be a whole number between 1 and 3650."
  }
}

variable "audit_archive_object_lock_days" {
  description = "Days that an archived event cannot be deleted. Can only be set when the bucket is created. Default: no lock."
  type        = number
  default     = null

  validation {
    condition     = var.audit_archive_object_lock_days == null ? true : (var.audit_archive_object_lock_days >= 1 && var.audit_archive_object_lock_days <= 36500 && floor(var.audit_archive_object_lock_days) == var.audit_archive_object_lock_days)
    error_message = "audit_archive_object_lock_days must be a whole number between 1 and 36500."
  }
}

variable "audit_archive_object_lock_mode" {
  description = "Who may remove a lock: `governance` or `compliance`."
  type        = string
  default     = "governance"
  nullable    = false

  validation {
    condition     = contains(["governance", "compliance"], var.audit_archive_object_lock_mode)
    error_message = "audit_archive_object_lock_mode must be one of governance, compliance."
  }
}

variable "archive_bucket" {
  description = "Name of an existing bucket for the archive, which the stack does not change. Default: a bucket of the stack."
  type        = string
  default     = null

  validation {
    condition     = var.archive_bucket == null ? true : (can(regex("^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", var.archive_bucket)) && !can(regex("[.][.]", var.archive_bucket)))
    error_message = "archive_bucket must match ^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$."
  }
}

variable "archive_bucket_name" {
  description = "Name of the bucket that the module makes for the archive. Set it for a bucket that is imported. Default: a name that starts with `name`."
  type        = string
  default     = null

  validation {
    condition     = var.archive_bucket_name == null ? true : (can(regex("^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", var.archive_bucket_name)) && !can(regex("[.][.]", var.archive_bucket_name)))
    error_message = "archive_bucket_name must match ^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$."
  }
}

variable "code_bucket" {
  description = "Name of an existing bucket for the functions' archives. Default: they are sent to Lambda directly."
  type        = string
  default     = null

  validation {
    condition     = var.code_bucket == null ? true : (can(regex("^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", var.code_bucket)) && !can(regex("[.][.]", var.code_bucket)))
    error_message = "code_bucket must match ^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$."
  }
}

variable "code_directory" {
  description = "Directory with `aggregator.zip` and `archiver.zip`."
  type        = string
  default     = null

  validation {
    condition     = var.code_directory == null ? true : (can(regex("^.+$", var.code_directory)))
    error_message = "code_directory must match ^.+$."
  }
}

variable "aggregator_code_key" {
  description = "Key of the aggregator's archive in `code_bucket`. Default: the archive is uploaded."
  type        = string
  default     = null

  validation {
    condition     = var.aggregator_code_key == null ? true : (can(regex("^[^[:cntrl:]]{1,1000}[^[:cntrl:]]{0,24}$", var.aggregator_code_key)))
    error_message = "aggregator_code_key must match ^[^[:cntrl:]]{1,1000}[^[:cntrl:]]{0,24}$."
  }
}

variable "archiver_code_key" {
  description = "Key of the archiver's archive in `code_bucket`. Default: the archive is uploaded."
  type        = string
  default     = null

  validation {
    condition     = var.archiver_code_key == null ? true : (can(regex("^[^[:cntrl:]]{1,1000}[^[:cntrl:]]{0,24}$", var.archiver_code_key)))
    error_message = "archiver_code_key must match ^[^[:cntrl:]]{1,1000}[^[:cntrl:]]{0,24}$."
  }
}

variable "tags" {
  description = "Tags for every resource of the stack, at most 43."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = length(var.tags) <= 43
    error_message = "tags must be at most 43: AWS allows 50 on a resource and the module sets the rest."
  }

  validation {
    condition     = alltrue([for key, value in var.tags : length(key) >= 1 && length(key) <= 128 && length(value) <= 256])
    error_message = "The keys of tags must have 1 to 128 characters, the values at most 256."
  }

  validation {
    condition     = alltrue([for key, value in var.tags : !startswith(lower(key), "aws:")])
    error_message = "The keys of tags must not start with aws:, which is reserved."
  }

  validation {
    condition     = alltrue([for key, value in var.tags : !contains(["ManagedBy", "Application"], key) && !startswith(key, "zae-limiter:")])
    error_message = "The tags ManagedBy, Application and zae-limiter:* are set by the module itself."
  }

  validation {
    condition     = alltrue([for key, value in var.tags : can(regex("^[\\p{L}\\p{N} _.:/=+@-]*$", key)) && can(regex("^[\\p{L}\\p{N} _.:/=+@-]*$", value))])
    error_message = "tags must have only letters, digits, spaces and _ . : / = + - @."
  }
}

variable "release" {
  description = "Release to download the functions' archives from, with their SHA-256 checksums; url is the address of the project's releases, such as `https://github.com/OWNER/REPO/releases/download`. Needs curl."
  type = object({
    url     = string
    version = optional(string, "0.1.0")
    sha256  = object({ aggregator = optional(string), archiver = optional(string) })
  })
  default = null

  validation {
    condition     = var.release == null ? true : alltrue([for sum in values(var.release.sha256) : sum == null || can(regex("^[0-9a-f]{64}$", sum))])
    error_message = "release.sha256 must have 64 lower-case hexadecimal digits for each function."
  }

  validation {
    condition     = var.release == null ? true : can(regex("^https://[!#-&(-~]+$", var.release.url))
    error_message = "release.url must start with https:// and have no quotes."
  }

  validation {
    condition     = var.release == null ? true : can(regex("^[0-9]+[.][0-9]+[.][0-9]+$", var.release.version))
    error_message = "release.version must be a version such as 1.2.3."
  }
}

variable "write_version_record" {
  description = "Whether to write the record of the table's version. Set it to false for an existing table that has one."
  type        = bool
  default     = true
  nullable    = false
}
