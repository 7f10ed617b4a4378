//! Lambda's event source mapping on a DynamoDB stream, for tests.
