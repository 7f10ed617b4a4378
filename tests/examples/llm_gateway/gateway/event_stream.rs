//! Server-sent events, as far as a reader of their data needs them.

/// An event longer than this is skipped. The events with the usage are short.
const MAX_EVENT: usize = 1 << 20;

/// Splits a stream of bytes into the data of its events, however the bytes are cut.
#[derive(Debug, Default)]
pub(crate) struct EventStream {
    line: Vec<u8>,
    data: Vec<u8>,
    /// The event is too long: nothing of it is kept.
    skips: bool,
}

impl EventStream {
    /// Reads a piece of the stream and returns the data of the events that have ended with it.
    pub(crate) fn read(&mut self, piece: &[u8]) -> Vec<Vec<u8>> {
        let mut events = vec![];
        for byte in piece {
            match byte {
                b'\n' => events.extend(self.end_line()),
                b'\r' => {}
                _ if self.line.len() + self.data.len() >= MAX_EVENT => self.skips = true,
                byte => self.line.push(*byte),
            }
        }
        events
    }

    /// An empty line ends an event.
    fn end_line(&mut self) -> Option<Vec<u8>> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            let skipped = std::mem::take(&mut self.skips);
            return (!skipped && !data.is_empty()).then_some(data);
        }
        if let Some(data) = line.strip_prefix(b"data:") {
            if !self.data.is_empty() {
                self.data.push(b'\n');
            }
            self.data
                .extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
        }
        None
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const STREAM: &str =
        "event: a\ndata: {\"one\":\ndata: 1}\n\n: a comment\r\n\r\ndata:[DONE]\r\n\r\ndata: cut off";

    fn text(events: Vec<Vec<u8>>) -> Vec<String> {
        events
            .into_iter()
            .map(|event| String::from_utf8(event).unwrap())
            .collect()
    }

    #[test]
    fn events_are_found_however_the_bytes_are_cut() {
        for length in 1..STREAM.len() {
            let mut stream = EventStream::default();
            let events: Vec<_> = STREAM
                .as_bytes()
                .chunks(length)
                .flat_map(|piece| stream.read(piece))
                .collect();
            assert_eq!(text(events), ["{\"one\":\n1}", "[DONE]"], "in pieces of {length}");
        }
    }

    #[test]
    fn an_event_that_is_too_long_is_skipped_and_the_next_is_not() {
        let mut stream = EventStream::default();
        let mut events = stream.read(b"data: ");
        let piece = vec![b'x'; 100_000];
        for _ in 0..20 {
            events.extend(stream.read(&piece));
        }
        events.extend(stream.read(b"\n\ndata: next\n\n"));
        assert_eq!(text(events), ["next"]);
        assert!(stream.line.capacity() <= 2 * MAX_EVENT);
    }
}
