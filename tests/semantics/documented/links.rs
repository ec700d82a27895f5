//! Links between the documents lead to a file that exists, and to a heading in it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

#[test]
fn links_lead_somewhere() {
    let mut documents: Vec<PathBuf> = Vec::new();
    for folder in ["", "docs", "docs/clients", "docs/coming-from", "docs/configuration", "lua", "tests"] {
        add(folder, &mut documents);
    }
    let mut broken = Vec::new();
    for document in &documents {
        let text = fs::read_to_string(document).unwrap();
        let broken_here = links(&text).into_iter().filter(|link| !leads_somewhere(document, link));
        broken.extend(broken_here.map(|link| format!("{}: {link}", document.display())));
    }
    assert!(documents.len() > 25, "{documents:?}");
    assert_eq!(broken, [""; 0]);
}

fn add(folder: &str, documents: &mut Vec<PathBuf>) {
    let files = fs::read_dir(Path::new(ROOT).join(folder)).unwrap().map(|entry| entry.unwrap().path());
    documents.extend(files.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
}

/// The text without blocks of code.
fn prose(text: &str) -> String {
    text.split("```").step_by(2).collect()
}

fn links(text: &str) -> Vec<String> {
    let prose = prose(text);
    let targets = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link);
    targets.filter(|link| !link.contains("://") && !link.contains(' ')).map(str::to_owned).collect()
}

fn leads_somewhere(document: &Path, link: &str) -> bool {
    let (file, heading) = link.split_once('#').unwrap_or((link, ""));
    let path = if file.is_empty() { document.to_owned() } else { document.with_file_name(file) };
    let is_text = path.extension().is_some_and(|extension| extension == "md");
    path.exists()
        && (heading.is_empty() || !is_text || headings(&fs::read_to_string(&path).unwrap()).contains(heading))
}

/// The anchors of a text, as forges make them: lower case, `-` for spaces, no other punctuation.
fn headings(text: &str) -> BTreeSet<String> {
    let prose = prose(text);
    let lines =
        prose.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let is_kept = |letter: &char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | ' ');
    lines
        .map(|line| line.to_lowercase().chars().filter(is_kept).collect::<String>().replace(' ', "-"))
        .collect()
}
