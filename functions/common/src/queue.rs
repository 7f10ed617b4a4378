//! The queue of dead letters.

use std::time::Duration;

use crate::{CallError, DeadLetter, DeadLetterMessage, DeadLetterSource, DeadLetters};

/// An SQS queue of dead letters.
#[derive(Debug, Clone)]
pub struct Queue {
    client: aws_sdk_sqs::Client,
    url: String,
}

impl Queue {
    /// The queue at that URL.
    pub fn new(client: aws_sdk_sqs::Client, url: impl Into<String>) -> Self {
        Self {
            client,
            url: url.into(),
        }
    }
}

impl Queue {
    /// How long a received message is hidden from others.
    pub const INVISIBLE: Duration = Duration::from_mins(15);
}

impl DeadLetterSource for Queue {
    async fn receive(&self) -> Result<Vec<DeadLetterMessage>, CallError> {
        let received = self
            .client
            .receive_message()
            .queue_url(&self.url)
            .max_number_of_messages(10)
            // A short poll may return nothing though there are messages.
            .wait_time_seconds(1)
            .visibility_timeout(i32::try_from(Self::INVISIBLE.as_secs()).unwrap_or(i32::MAX))
            .send()
            .await
            .map_err(|error| CallError::from(&error))?;
        let messages = received.messages.unwrap_or_default().into_iter();
        Ok(messages
            .map(|message| DeadLetterMessage {
                id: message.message_id.unwrap_or_default(),
                receipt: message.receipt_handle.unwrap_or_default(),
                body: message.body.unwrap_or_default(),
            })
            .collect())
    }

    async fn release(&self, message: &DeadLetterMessage) -> Result<(), CallError> {
        self.client
            .change_message_visibility()
            .queue_url(&self.url)
            .receipt_handle(&message.receipt)
            .visibility_timeout(0)
            .send()
            .await
            .map(drop)
            .map_err(|error| CallError::from(&error))
    }

    async fn delete(&self, message: &DeadLetterMessage) -> Result<(), CallError> {
        self.client
            .delete_message()
            .queue_url(&self.url)
            .receipt_handle(&message.receipt)
            .send()
            .await
            .map(drop)
            .map_err(|error| CallError::from(&error))
    }
}

impl DeadLetters for Queue {
    async fn send(&self, letter: &DeadLetter<'_>) -> Result<(), CallError> {
        self.client
            .send_message()
            .queue_url(&self.url)
            .message_body(letter.to_message())
            .send()
            .await
            .map(drop)
            .map_err(|error| CallError::from(&error))
    }
}
