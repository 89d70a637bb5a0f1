//! Files that are there whole or not at all.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

/// Writes a file under another name beside it, and gives it its own when all of it is on the disk.
/// The folder is made if it is not there; on an error nothing is left behind.
pub fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let Some(name) = path.file_name() else {
        return Err(named(io::Error::new(io::ErrorKind::InvalidInput, "not the name of a file")));
    };
    let mut part = std::ffi::OsString::from(".");
    part.push(name);
    part.push(format!(".part-{}", std::process::id()));
    let part = path.with_file_name(part);
    let write = || {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder)?;
        }
        let mut file = File::create(&part)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&part, path)
    };
    write().map_err(|error| {
        let _ = fs::remove_file(&part);
        named(error)
    })
}

/// Cells as one line of CSV; a cell that holds a comma, a quote or a line end is quoted.
pub fn csv_line<'a>(cells: impl IntoIterator<Item = &'a str>) -> String {
    let quoted = |cell: &str| {
        if cell.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", cell.replace('"', "\"\""))
        } else {
            cell.to_owned()
        }
    };
    let mut line = cells.into_iter().map(quoted).collect::<Vec<_>>().join(",");
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/record.json");
        write_whole(&path, "one").unwrap();
        write_whole(&path, "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn what_cannot_be_written_is_said_with_its_path_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        // A folder has the name: the rename fails after the part was written.
        let path = folder.path().join("record.json");
        fs::create_dir_all(path.join("inside")).unwrap();
        let error = write_whole(&path, "text").unwrap_err();
        assert!(error.to_string().contains("record.json"), "{error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        assert_eq!(csv_line(["a", "b,c", "d\"e", ""]), "a,\"b,c\",\"d\"\"e\",\n");
    }
}
