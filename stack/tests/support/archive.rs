//! Zip archives with one file in them.

use flate2::Crc;

/// An archive with one executable file, stored as it is.
pub(crate) fn zip(name: &str, content: &[u8]) -> Vec<u8> {
    let mut crc = Crc::new();
    crc.update(content);
    let length = u32::try_from(content.len()).unwrap().to_le_bytes();
    let name_length = u16::try_from(name.len()).unwrap().to_le_bytes();
    // Version, flags, method, time, date; then what both headers have.
    let mut common = vec![20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0];
    common.extend(crc.sum().to_le_bytes());
    common.extend(length);
    common.extend(length);
    common.extend(name_length);
    common.extend([0, 0]);

    let mut archive = b"PK\x03\x04".to_vec();
    archive.extend(&common);
    archive.extend(name.as_bytes());
    archive.extend(content);
    let directory = u32::try_from(archive.len()).unwrap();
    // Made on Unix, so that the file's mode counts.
    archive.extend(b"PK\x01\x02\x14\x03");
    archive.extend(&common);
    archive.extend([0; 6]);
    archive.extend((0o100_755_u32 << 16).to_le_bytes());
    archive.extend([0; 4]);
    archive.extend(name.as_bytes());
    let size = u32::try_from(archive.len()).unwrap() - directory;
    archive.extend(b"PK\x05\x06\0\0\0\0\x01\0\x01\0");
    archive.extend(size.to_le_bytes());
    archive.extend(directory.to_le_bytes());
    archive.extend([0, 0]);
    archive
}
