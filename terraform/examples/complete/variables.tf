variable "region" {
  description = "Region of the limiter."
  type        = string
  default     = "eu-central-1"
}

variable "release" {
  description = "Address of the project's releases, and the SHA-256 checksums of its archives."
  type = object({
    url    = string
    sha256 = object({ aggregator = string, archiver = string })
  })
}

variable "kms_key_arn" {
  description = "ARN of the key that encrypts the table, queues, logs and archive."
  type        = string
}

variable "alarm_sns_topic" {
  description = "ARN of the topic that alarms notify."
  type        = string
}

variable "aggregator_role_arn" {
  description = "ARN of an existing role for the aggregator. Default: a role of the module."
  type        = string
  default     = null
}

variable "archiver_role_arn" {
  description = "ARN of an existing role for the archiver. Default: a role of the module."
  type        = string
  default     = null
}
