//! The APIs that the gateway knows, by path.

/// Who serves a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Provider {
    OpenAi,
    Anthropic,
}

/// What is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    /// OpenAI's `/v1/chat/completions` and `/v1/completions`, which many other providers have too.
    Completions,
    /// OpenAI's `/v1/responses`.
    Responses,
    /// OpenAI's `/v1/embeddings`.
    Embeddings,
    /// Anthropic's `/v1/messages`.
    Messages,
}

impl Api {
    pub(crate) fn at(path: &str) -> Option<Self> {
        match path {
            "/v1/chat/completions" | "/v1/completions" => Some(Self::Completions),
            "/v1/responses" => Some(Self::Responses),
            "/v1/embeddings" => Some(Self::Embeddings),
            "/v1/messages" => Some(Self::Messages),
            _ => None,
        }
    }

    pub(crate) fn provider(self) -> Provider {
        match self {
            Self::Completions | Self::Responses | Self::Embeddings => Provider::OpenAi,
            Self::Messages => Provider::Anthropic,
        }
    }
}
