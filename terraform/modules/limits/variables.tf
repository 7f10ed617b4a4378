variable "table_name" {
  description = "Name of the limiter's table: the name of its module or stack."
  type        = string

  validation {
    condition     = can(regex("^[a-zA-Z][a-zA-Z0-9-]{2,54}$", var.table_name))
    error_message = "The name must start with a letter and have 3 to 55 letters, digits and hyphens."
  }
}

variable "archive" {
  description = "Path of the provisioner's archive, provisioner.zip of a release or of make functions."
  type        = string
}

variable "architecture" {
  description = "Processor that the archive was built for: x86_64 or arm64."
  type        = string
  default     = "x86_64"
  nullable    = false

  validation {
    condition     = contains(["x86_64", "arm64"], var.architecture)
    error_message = "The architecture must be x86_64 or arm64."
  }
}

variable "limits" {
  description = "The limits file, such as file(\"limits.yaml\")."
  type        = string
}

variable "kms_key_arn" {
  description = "ARN of the KMS key of the table, which the function also uses for its queue and logs. Default: AWS owned keys."
  type        = string
  default     = null

  validation {
    condition     = var.kms_key_arn == null ? true : (can(regex("^arn:aws(-[a-z-]+)?:kms:[!-9;-~]+:[0-9]{12}:key/[!-~]+$", var.kms_key_arn)))
    error_message = "kms_key_arn must match ^arn:aws(-[a-z-]+)?:kms:[!-9;-~]+:[0-9]{12}:key/[!-~]+$."
  }
}

variable "log_retention_days" {
  description = "Days to keep the function's logs."
  type        = number
  default     = 30
  nullable    = false

  validation {
    condition     = contains([1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653], var.log_retention_days)
    error_message = "log_retention_days must be one of 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653."
  }
}

variable "lambda_subnet_ids" {
  description = "Subnets of the function, in one VPC that reaches the AWS services in use."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = length(var.lambda_subnet_ids) <= 16 && alltrue([for id in var.lambda_subnet_ids : can(regex("^subnet-[0-9a-f]{8,17}$", id))])
    error_message = "lambda_subnet_ids must be at most 16 ids of subnets."
  }
}

variable "lambda_security_group_ids" {
  description = "Security groups of the function, with `lambda_subnet_ids`."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = length(var.lambda_security_group_ids) <= 16 && alltrue([for id in var.lambda_security_group_ids : can(regex("^sg-[0-9a-f]{8,17}$", id))])
    error_message = "lambda_security_group_ids must be at most 16 ids of security groups."
  }
}

variable "enable_tracing" {
  description = "Whether the function is traced with X-Ray."
  type        = bool
  default     = false
  nullable    = false
}

variable "enable_alarms" {
  description = "Whether the module has alarms."
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

variable "iam_path" {
  description = "Path of the role, such as `/limiter/`. Default: `/`."
  type        = string
  default     = null

  validation {
    condition     = var.iam_path == null ? true : (can(regex("^/([A-Za-z0-9+=,.@_-]+/)+$", var.iam_path)) && length(var.iam_path) <= 512)
    error_message = "iam_path must match ^/([A-Za-z0-9+=,.@_-]+/)+$ and have at most 512 characters."
  }
}

variable "permission_boundary" {
  description = "Name or ARN of the managed policy that is the permissions boundary of the role. Default: none."
  type        = string
  default     = null

  validation {
    condition     = var.permission_boundary == null ? true : (can(regex("^(arn:aws(-[a-z-]+)?:iam:[!-9;-~]*:([0-9]{12}|aws):policy/[!-~]+|[A-Za-z0-9+=,.@_-]+(/[A-Za-z0-9+=,.@_-]+)*)$", var.permission_boundary)))
    error_message = "permission_boundary must match ^(arn:aws(-[a-z-]+)?:iam:[!-9;-~]*:([0-9]{12}|aws):policy/[!-~]+|[A-Za-z0-9+=,.@_-]+(/[A-Za-z0-9+=,.@_-]+)*)$."
  }
}

variable "role_name_format" {
  description = "Format of the role's name, with `{}` in place of `{table}-prov`. Default: `{}`."
  type        = string
  default     = null

  validation {
    condition     = var.role_name_format == null ? true : (can(regex("^[A-Za-z0-9+=,.@_-]*[{][}][A-Za-z0-9+=,.@_-]*$", var.role_name_format)) && length(var.role_name_format) <= 55)
    error_message = "role_name_format must match ^[A-Za-z0-9+=,.@_-]*[{][}][A-Za-z0-9+=,.@_-]*$ and have at most 55 characters."
  }
}

variable "regional_iam_names" {
  description = "Whether the role's name includes the region, so that one table name works in several."
  type        = bool
  default     = false
  nullable    = false
}

variable "tags" {
  description = "Tags for everything in the module."
  type        = map(string)
  default     = {}
  nullable    = false
}
