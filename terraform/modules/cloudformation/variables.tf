variable "name" {
  description = "Name of the stack and of the table."
  type        = string

  validation {
    condition     = can(regex("^[A-Za-z][A-Za-z0-9-]{2,52}$", var.name))
    error_message = "The name must start with a letter and have 3 to 53 letters, digits and hyphens."
  }
}

variable "code_bucket" {
  description = "Existing bucket for the functions' archives and for a large template, in the region of the stack."
  type        = string
}

variable "aggregator_zip" {
  description = "Path of the aggregator's archive. Not used if the template has no aggregator."
  type        = string
  default     = null
}

variable "archiver_zip" {
  description = "Path of the archiver's archive. Not used if the template has no archiver."
  type        = string
  default     = null
}

variable "write_version_record" {
  description = "Whether to write the record of the table's version. Set it to false for an existing table that has one."
  type        = bool
  default     = true
  nullable    = false
}

variable "notification_arns" {
  description = "ARNs of SNS topics that receive the stack's events."
  type        = list(string)
  default     = []
  nullable    = false
}

variable "tags" {
  description = "Tags for everything in the stack."
  type        = map(string)
  default     = {}
  nullable    = false
}
