variable "name" {
  description = "Name of the stack and of the table."
  type        = string

  validation {
    condition     = can(regex("^[A-Za-z][A-Za-z0-9-]{2,52}$", var.name))
    error_message = "The name must start with a letter and have 3 to 53 letters, digits and hyphens."
  }
}

variable "code_bucket" {
  description = "Existing bucket for the functions' archives, in the region of the stack."
  type        = string
}

variable "aggregator_zip" {
  description = "Path of the aggregator's archive."
  type        = string
}

variable "archiver_zip" {
  description = "Path of the archiver's archive."
  type        = string
}

variable "write_version_record" {
  description = "Whether to write the record of the table's version, which clients look at."
  type        = bool
  default     = true
}

variable "notification_arns" {
  description = "ARNs of SNS topics that are told of the stack's events."
  type        = list(string)
  default     = []
}

variable "tags" {
  description = "Tags for everything in the stack."
  type        = map(string)
  default     = {}
}
