//! What can run a function's program, read from its archive.

use std::io::Read;

use zae_limiter_template::Architecture;

/// The name of the program in a function's archive.
const PROGRAM: &[u8] = b"bootstrap";
/// Bytes of an ELF header up to and including the machine.
const HEADER: usize = 20;

/// What can run the program in an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Runs {
    /// A processor that Lambda has.
    On(Architecture),
    /// A processor that Lambda does not have, by its number in the ELF header.
    Nowhere {
        /// Such as 0xf3 for RISC-V.
        machine: u16,
    },
    /// Any processor: it is a script.
    Anywhere,
}

/// What can run the program `bootstrap` of an archive; `None` if that is not the archive's first file, or is cut off. Archives
/// of this project have no other file.
pub(super) fn runs(archive: &[u8]) -> Option<Runs> {
    let start = start_of_program(archive)?;
    if !start.starts_with(b"\x7fELF") {
        return Some(Runs::Anywhere);
    }
    let machine = start.get(18..HEADER)?;
    Some(match u16::from_le_bytes([machine[0], machine[1]]) {
        0x3e => Runs::On(Architecture::X86_64),
        0xb7 => Runs::On(Architecture::Arm64),
        machine => Runs::Nowhere { machine },
    })
}

/// The first bytes of the archive's first file, if it is the program.
fn start_of_program(archive: &[u8]) -> Option<Vec<u8>> {
    let field = |at: usize| -> Option<u16> {
        let bytes = archive.get(at..at + 2)?;
        Some(u16::from_le_bytes([bytes[0], bytes[1]]))
    };
    let (method, name, extra) = (field(8)?, usize::from(field(26)?), usize::from(field(28)?));
    if archive.get(30..30 + name)? != PROGRAM {
        return None;
    }
    let content = archive.get(30 + name + extra..)?;
    let mut start = Vec::with_capacity(HEADER);
    match method {
        0 => start.extend(content.iter().take(HEADER)),
        8 => {
            let mut decoder = flate2::read::DeflateDecoder::new(content).take(HEADER as u64);
            decoder.read_to_end(&mut start).ok()?;
        }
        _ => return None,
    }
    (!start.is_empty()).then_some(start)
}

#[cfg(test)]
mod tests {
    use super::super::sample::{Method, archive, machine, program};
    use super::*;

    const METHODS: [Method; 2] = [Method::Stored, Method::Deflated];

    #[test]
    fn the_machine_of_a_program_is_its_architecture() {
        for method in METHODS {
            let of = |machine| runs(&archive("bootstrap", method, &program(machine)));
            assert_eq!(of(machine::X86_64), Some(Runs::On(Architecture::X86_64)));
            assert_eq!(of(machine::ARM64), Some(Runs::On(Architecture::Arm64)));
            let machine = machine::RISC_V;
            assert_eq!(of(machine), Some(Runs::Nowhere { machine }));
        }
    }

    #[test]
    fn a_script_runs_anywhere_however_short_it_is() {
        for method in METHODS {
            let script = archive("bootstrap", method, b"#!/bin/sh\n");
            assert_eq!(runs(&script), Some(Runs::Anywhere));
        }
    }

    #[test]
    fn anything_else_is_no_program() {
        assert_eq!(
            runs(&archive("other", Method::Stored, &program(machine::X86_64))),
            None
        );
        assert_eq!(runs(&archive("bootstrap", Method::Stored, b"")), None);
        assert_eq!(runs(b"PK\x03\x04"), None);
        let whole = archive("bootstrap", Method::Deflated, &program(machine::X86_64));
        for length in 0..whole.len() {
            runs(&whole[..length]);
        }
    }
}
