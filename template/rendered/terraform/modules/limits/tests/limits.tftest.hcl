# Needs Terraform 1.7 or later and no AWS account: `terraform init && terraform test`.
mock_provider "aws" {}

# Any file will do for an archive.
variables {
  table_name = "limiter"
  archive    = "versions.tf"
  limits     = "system: {limits: {rpm: 100}}"
}

run "defaults" {
  command = plan

  assert {
    condition     = aws_lambda_function.provisioner_function.function_name == "limiter-provisioner"
    error_message = "The function has the name of the table."
  }

  assert {
    condition     = aws_lambda_invocation.limits.lifecycle_scope == "CRUD"
    error_message = "A file that is removed is withdrawn."
  }
}

run "a_name_of_a_wrong_form" {
  command         = plan
  expect_failures = [var.table_name]

  variables {
    table_name = "1"
  }
}

run "an_unknown_processor" {
  command         = plan
  expect_failures = [var.architecture]

  variables {
    architecture = "riscv"
  }
}
