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

  validation {
    condition     = contains(["x86_64", "arm64"], var.architecture)
    error_message = "The architecture must be x86_64 or arm64."
  }
}

variable "limits" {
  description = "The limits file, such as file(\"limits.yaml\")."
  type        = string
}

variable "tags" {
  description = "Tags for everything in the module."
  type        = map(string)
  default     = {}
}
