//! Bodies of limited responses: when one ends, its lease is settled.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::settlement::Settlement;

pin_project! {
    /// The body of a response of a limited service. Chunks are [`Bytes`]: those that are already are not copied.
    #[derive(Debug)]
    pub struct LimitedBody<B> {
        #[pin]
        content: Content<B>,
        settlement: Option<Settlement>,
    }
}

pin_project! {
    #[derive(Debug)]
    #[project = ContentProjection]
    enum Content<B> {
        // The response of the service.
        Inner { #[pin] body: B },
        // The layer's own response, until it is sent.
        Own { text: Option<Bytes> },
    }
}

impl<B> LimitedBody<B> {
    pub(super) fn unlimited(body: B) -> Self {
        Self {
            content: Content::Inner { body },
            settlement: None,
        }
    }

    pub(super) fn limited(body: B, settlement: Settlement) -> Self {
        Self {
            content: Content::Inner { body },
            settlement: Some(settlement),
        }
    }

    pub(super) fn own(text: String) -> Self {
        let text = Some(Bytes::from(text)).filter(|text| !text.is_empty());
        Self {
            content: Content::Own { text },
            settlement: None,
        }
    }
}

impl<B: Body> Body for LimitedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.project();
        let body = match this.content.project() {
            ContentProjection::Inner { body } => body,
            ContentProjection::Own { text } => {
                return Poll::Ready(text.take().map(|text| Ok(Frame::data(text))));
            }
        };
        let Some(frame) = ready!(body.poll_frame(context)) else {
            // Dropped, it settles the lease.
            *this.settlement = None;
            return Poll::Ready(None);
        };
        let frame = frame.map(|frame| frame.map_data(|mut data| data.copy_to_bytes(data.remaining())));
        if let (Ok(frame), Some(settlement)) = (&frame, this.settlement) {
            if let Some(data) = frame.data_ref() {
                settlement.data(data);
            }
            if let Some(trailers) = frame.trailers_ref() {
                settlement.trailers(trailers);
            }
        }
        Poll::Ready(Some(frame))
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Inner { body } => body.is_end_stream(),
            Content::Own { text } => text.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Inner { body } => body.size_hint(),
            Content::Own { text } => SizeHint::with_exact(text.as_ref().map_or(0, Bytes::len) as u64),
        }
    }
}
