//! `weir control put-many`: the changes of a file, so many in one call, with what became of each call.

use std::fs::File;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{BufRead, BufReader, stdin};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use weir_load::client::{Client, ClientError};
use weir_proto::DESCRIPTORS;
use weir_proto::v1::{
    ChangeOptions, ChangeResult, EntryPut, FindChangeRequest, PutManyRequest, PutManyResponse,
};

use super::super::server_args::AskArgs;
use super::super::terminal::say;
use super::{lasting, text};

/// Calls for one part of the file, before the command gives up.
const TRIES: usize = 5;

/// The longest line, in bytes.
const MAX_LINE: usize = 1 << 20;

#[derive(Debug, clap::Args)]
pub(super) struct PutManyArgs {
    /// The file, with one change a line as proto-JSON of weir.v1.EntryPut; - for standard input
    file: PathBuf,
    /// Changes of one call, which are made together or not at all
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=1000))]
    together: u32,
    /// Lifetime of the entries: 10m, 1h, 7d [default: until they are deleted]
    #[arg(long = "for", value_parser = lasting, value_name = "SPAN")]
    lasts: Option<prost_types::Duration>,
    /// Why, for the audit
    #[arg(long, default_value = "", hide_default_value = true)]
    reason: String,
    /// Check every change, and make none
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    show: AskArgs,
}

/// Reads the whole file before the first call, so that a mistake in it changes nothing.
pub(super) fn put_many(args: PutManyArgs) -> Result<()> {
    let changes = read(&args.file)?;
    if changes.is_empty() {
        bail!("{} has no changes: write one a line, such as {EXAMPLE}", args.file.display());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let total = runtime.block_on(async {
        let mut client = args.show.server.connect().await?;
        let (mut total, mut done) = (PutManyResponse { applied: !args.dry_run, ..Default::default() }, 0);
        for part in changes.chunks(args.together as usize) {
            let lines = format!("lines {} to {}", done + 1, done + part.len());
            let made = one_call(&mut client, &args, part).await;
            let made = made.with_context(|| format!("{lines}; the {done} lines before are in force"))?;
            done += part.len();
            say(&format!("{done} of {} changes", changes.len()));
            total.version = made.version;
            total.created += made.created;
            total.replaced += made.replaced;
            total.deleted += made.deleted;
        }
        anyhow::Ok(total)
    })?;
    args.show.output.print("weir.v1.PutManyResponse", &total, || text::many(&total))
}

const EXAMPLE: &str =
    r#"{"override": {"resource": "api/*", "consumer": "bob", "limits": {"each": "50/1s"}}}"#;

/// Makes one call. Without an answer it asks whether the change was made, and makes it again under its id if it was not.
async fn one_call(client: &mut Client, args: &PutManyArgs, part: &[EntryPut]) -> Result<PutManyResponse> {
    let change = format!("{:016x}", RandomState::new().build_hasher().finish().max(1));
    let options = ChangeOptions {
        expires_after: args.lasts,
        reason: args.reason.clone(),
        dry_run: args.dry_run,
        change: change.clone(),
        ..ChangeOptions::default()
    };
    let request = PutManyRequest { changes: part.to_vec(), options: Some(options) };
    let mut tries = 1;
    loop {
        let error = match client.put_many(request.clone()).await {
            Ok(response) => return Ok(response),
            Err(error) => error,
        };
        let is_open = matches!(
            &error,
            ClientError::Timeout(_)
                | ClientError::Unreachable { .. }
                | ClientError::Refused { code: "UNAVAILABLE" | "DEADLINE_EXCEEDED" | "CANCELLED", .. }
        );
        if !is_open || tries == TRIES {
            return Err(error)
                .context(format!("`weir control applied {change}` says whether this call was applied"));
        }
        tries += 1;
        let asked = client.find_change(FindChangeRequest { change: change.clone() }).await;
        if let Ok(found) = asked
            && found.result() == ChangeResult::Applied
        {
            let created = u32::try_from(part.len()).unwrap_or(u32::MAX);
            return Ok(PutManyResponse {
                applied: true,
                version: found.version,
                created,
                ..Default::default()
            });
        }
        say(&format!("{error}; the call is made again under its id {change}"));
    }
}

fn read(path: &Path) -> Result<Vec<EntryPut>> {
    let pool = DescriptorPool::decode(DESCRIPTORS)?;
    let descriptor = pool.get_message_by_name("weir.v1.EntryPut").context("the change has no descriptor")?;
    let input: Box<dyn BufRead> = if path == Path::new("-") {
        Box::new(stdin().lock())
    } else {
        Box::new(BufReader::new(File::open(path).with_context(|| path.display().to_string())?))
    };
    let mut changes = Vec::new();
    for (number, line) in input.lines().enumerate() {
        let line = line.with_context(|| path.display().to_string())?;
        if line.trim().is_empty() {
            continue;
        }
        let change = change(&descriptor, &line);
        changes.push(change.with_context(|| format!("{}, line {}", path.display(), number + 1))?);
    }
    Ok(changes)
}

fn change(descriptor: &MessageDescriptor, line: &str) -> Result<EntryPut> {
    if line.len() > MAX_LINE {
        bail!("the line has {} bytes: at most {MAX_LINE}", line.len());
    }
    let mut reader = serde_json::Deserializer::from_str(line);
    let message = DynamicMessage::deserialize(descriptor.clone(), &mut reader)
        .map_err(|error| anyhow::anyhow!("{error}; a change looks as {EXAMPLE}"))?;
    reader.end()?;
    Ok(EntryPut::decode(message.encode_to_vec().as_slice())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_one_change_a_line_and_a_mistake_is_named_by_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("changes");
        let second = r#"{"access": {"list": "ACCESS_LIST_DENY", "consumer": "bot"}, "deletes": true}"#;
        std::fs::write(&path, format!("{EXAMPLE}\n\n{second}\n")).unwrap();
        let changes = read(&path).unwrap();
        assert_eq!((changes.len(), changes[1].deletes), (2, true));
        std::fs::write(&path, format!("{EXAMPLE}\n{{\"override\": 3}}\n")).unwrap();
        let mistake = format!("{:#}", read(&path).unwrap_err());
        assert!(mistake.contains("line 2") && mistake.contains("a change looks as"), "{mistake}");
    }
}
