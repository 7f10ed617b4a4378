//! The architecture of a function's program, read from its archive.

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
    /// Not known: the archive's first file is not `bootstrap`, or not an ELF program. A script runs anywhere.
    Unknown,
}

/// What can run the program `bootstrap` of an archive.
pub(super) fn runs(archive: &[u8]) -> Runs {
    let Some(header) = start_of_program(archive).filter(|header| header.starts_with(b"\x7fELF")) else {
        return Runs::Unknown;
    };
    match u16::from_le_bytes([header[18], header[19]]) {
        0x3e => Runs::On(Architecture::X86_64),
        0xb7 => Runs::On(Architecture::Arm64),
        machine => Runs::Nowhere { machine },
    }
}

/// The first bytes of the archive's first file, if it is the program.
fn start_of_program(archive: &[u8]) -> Option<[u8; HEADER]> {
    let field = |at: usize| -> Option<u16> {
        let bytes = archive.get(at..at + 2)?;
        Some(u16::from_le_bytes([bytes[0], bytes[1]]))
    };
    let (method, name, extra) = (field(8)?, usize::from(field(26)?), usize::from(field(28)?));
    if archive.get(30..30 + name)? != PROGRAM {
        return None;
    }
    let content = archive.get(30 + name + extra..)?;
    let mut header = [0; HEADER];
    match method {
        0 => header.copy_from_slice(content.get(..HEADER)?),
        8 => flate2::read::DeflateDecoder::new(content)
            .read_exact(&mut header)
            .ok()?,
        _ => return None,
    }
    Some(header)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::Write;

    use super::*;

    fn program(machine: u16) -> Vec<u8> {
        let mut program = b"\x7fELF\x02\x01\x01".to_vec();
        program.resize(18, 0);
        program.extend(machine.to_le_bytes());
        program.extend([0; 100]);
        program
    }

    fn archive(name: &str, method: u16, content: &[u8]) -> Vec<u8> {
        let mut archive = b"PK\x03\x04\x14\0\0\0".to_vec();
        archive.extend(method.to_le_bytes());
        archive.resize(26, 0);
        archive.extend(u16::try_from(name.len()).unwrap().to_le_bytes());
        archive.extend(0_u16.to_le_bytes());
        archive.extend(name.as_bytes());
        if method == 8 {
            let mut encoder = flate2::write::DeflateEncoder::new(archive, flate2::Compression::best());
            encoder.write_all(content).unwrap();
            return encoder.finish().unwrap();
        }
        archive.extend(content);
        archive
    }

    #[test]
    fn the_machine_of_a_program_is_its_architecture() {
        for method in [0, 8] {
            let of = |machine| runs(&archive("bootstrap", method, &program(machine)));
            assert_eq!(of(0x3e), Runs::On(Architecture::X86_64));
            assert_eq!(of(0xb7), Runs::On(Architecture::Arm64));
            assert_eq!(of(0xf3), Runs::Nowhere { machine: 0xf3 });
        }
    }

    #[test]
    fn anything_else_has_no_architecture() {
        assert_eq!(
            runs(&archive("bootstrap", 0, b"#!/bin/sh\nexec true # padding")),
            Runs::Unknown
        );
        assert_eq!(runs(&archive("other", 0, &program(0x3e))), Runs::Unknown);
        assert_eq!(runs(b"PK\x03\x04"), Runs::Unknown);
        let whole = archive("bootstrap", 8, &program(0x3e));
        for length in 0..whole.len() {
            runs(&whole[..length]);
        }
    }
}
