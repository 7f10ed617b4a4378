variable "region" {
  description = "Region of the limiter."
  type        = string
  default     = "eu-central-1"
}

variable "code_bucket" {
  description = "Bucket for the functions' archives, in the region of the stack."
  type        = string
}

variable "code_directory" {
  description = "Directory with `aggregator.zip` and `archiver.zip`."
  type        = string
}
