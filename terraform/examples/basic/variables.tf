variable "region" {
  description = "Region of the limiter."
  type        = string
  default     = "eu-central-1"
}

variable "code_directory" {
  description = "Directory with `aggregator.zip` and `archiver.zip`."
  type        = string
}
