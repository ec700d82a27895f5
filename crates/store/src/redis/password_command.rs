//! Runs the command that prints a password.
//!
//! Nobody else sees what it prints: standard error goes nowhere, and no message shows either.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};
use weir_time::clock::monotonic;

const WITHIN: Duration = Duration::from_secs(5);

/// The most that it may print, in bytes, without a line break at the end.
const MAX_PRINTED: usize = 4096;

/// Interval at which the end of a command is looked for that has closed its output.
const LOOK: Duration = Duration::from_millis(2);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum CommandError {
    #[error("it cannot be started: {reason}")]
    Start { reason: String },
    #[error("what it prints cannot be read: {reason}")]
    Read { reason: String },
    /// The command took too long.
    #[error("it did not end within {} s, and was killed", WITHIN.as_secs())]
    Late,
    #[error("it printed more than {MAX_PRINTED} bytes, and was killed")]
    TooLong,
    #[error("it ended with {status}")]
    Failed {
        /// The exit code, or the signal.
        status: String,
    },
    /// The command printed nothing, or just an empty line.
    #[error("it printed nothing")]
    Empty,
    #[error("it printed something that is not UTF-8")]
    NotText,
    /// The thread that ran it is gone.
    #[error("its thread ended")]
    Stopped,
}

impl CommandError {
    pub(super) fn start(error: &io::Error) -> Self {
        Self::Start { reason: error.to_string() }
    }
}

/// Runs the command, and returns what it printed, without the line break at the end.
pub(super) fn run(words: &[String]) -> Result<String, CommandError> {
    run_within(words, WITHIN)
}

fn run_within(words: &[String], within: Duration) -> Result<String, CommandError> {
    let ends = monotonic() + within;
    let (program, arguments) = words.split_first().ok_or(CommandError::Empty)?;
    let mut command = Command::new(program);
    command.args(arguments).env_clear().process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| CommandError::start(&error))?;
    let ended = output(&mut child, ends).and_then(|printed| Ok((printed, end(&mut child, ends)?)));
    let (printed, status) = match ended {
        Ok(ended) => ended,
        Err(error) => {
            kill(&mut child);
            return Err(error);
        }
    };
    if !status.success() {
        return Err(CommandError::Failed { status: written(status) });
    }
    password(printed)
}

fn output(child: &mut Child, ends: Instant) -> Result<Vec<u8>, CommandError> {
    let read_error = |error: io::Error| CommandError::Read { reason: error.to_string() };
    let stdout = child.stdout.take().ok_or(CommandError::Empty)?;
    let mut stdout = File::from(std::os::fd::OwnedFd::from(stdout));
    let mut printed = Vec::new();
    let mut part = [0; 1024];
    loop {
        let left = ends.saturating_duration_since(monotonic());
        let timeout = Timespec::try_from(left).map_err(|_| CommandError::Late)?;
        let mut ready = [PollFd::new(&stdout, PollFlags::IN)];
        match poll(&mut ready, Some(&timeout)) {
            Ok(0) => return Err(CommandError::Late),
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(read_error(error.into())),
        }
        let count = stdout.read(&mut part).map_err(read_error)?;
        printed.extend_from_slice(part.get(..count).unwrap_or_default());
        if count == 0 {
            return Ok(printed);
        }
        // Two more bytes for the line break.
        if printed.len() > MAX_PRINTED + 2 {
            return Err(CommandError::TooLong);
        }
    }
}

/// Waits for the end of a command that has closed its output.
fn end(child: &mut Child, ends: Instant) -> Result<ExitStatus, CommandError> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if monotonic() < ends => std::thread::sleep(LOOK),
            Ok(None) => return Err(CommandError::Late),
            Err(error) => return Err(CommandError::Read { reason: error.to_string() }),
        }
    }
}

/// Kills the command, and all that it has started in its process group.
fn kill(child: &mut Child) {
    // It has not been waited for, so its number is not another's.
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait();
}

fn written(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => status.to_string(),
    }
}

fn password(printed: Vec<u8>) -> Result<String, CommandError> {
    let text = String::from_utf8(printed).map_err(|_| CommandError::NotText)?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    match line.len() {
        0 => Err(CommandError::Empty),
        length if length > MAX_PRINTED => Err(CommandError::TooLong),
        _ => Ok(line.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Result<String, CommandError> {
        run(&["/bin/sh", "-c", script].map(str::to_owned))
    }

    #[test]
    fn what_it_prints_is_the_password() {
        for (script, expected) in [("printf a", "a"), ("echo 'b c'", "b c"), ("printf 'd\\r\\n'", "d")] {
            assert_eq!(shell(script).as_deref(), Ok(expected), "{script}");
        }
        let longest = "head -c 4096 /dev/zero | tr '\\0' x; echo";
        assert_eq!(shell(longest).map(|text| text.len()), Ok(4096));
    }

    #[test]
    fn it_has_no_shell_no_input_and_no_environment() {
        let words = ["/bin/echo", "$HOME", "*"].map(str::to_owned);
        assert_eq!(run(&words).as_deref(), Ok("$HOME *"));
        assert_eq!(run(&["/usr/bin/env".to_owned()]), Err(CommandError::Empty));
        assert_eq!(shell("read line || printf none").as_deref(), Ok("none"));
    }

    #[test]
    fn what_is_no_password() {
        let failed = |status: &str| CommandError::Failed { status: status.to_owned() };
        for (script, expected) in [
            ("exit 3", failed("exit code 3")),
            ("echo hunter2; exit 1", failed("exit code 1")),
            ("kill -9 $$", failed("signal 9")),
            ("", CommandError::Empty),
            ("echo", CommandError::Empty),
            ("printf '\\377'", CommandError::NotText),
            ("head -c 4097 /dev/zero", CommandError::TooLong),
            ("cat /dev/zero", CommandError::TooLong),
        ] {
            assert_eq!(shell(script), Err(expected), "{script}");
        }
        let missing = run(&["/no/such".to_owned()]).unwrap_err().to_string();
        assert_eq!(missing, "it cannot be started: No such file or directory (os error 2)");
    }

    #[test]
    fn it_ends_in_time() {
        for script in ["sleep 1000", "sleep 1000 & exit 0", "exec >&-; sleep 1000"] {
            let words = ["/bin/sh", "-c", script].map(str::to_owned);
            assert_eq!(run_within(&words, Duration::from_millis(20)), Err(CommandError::Late), "{script}");
        }
    }

    #[test]
    fn its_process_group_is_killed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let script = format!("sleep 1000 & echo $! > {}; cat /dev/zero", file.path().display());
        assert_eq!(shell(&script), Err(CommandError::TooLong));
        let started = std::fs::read_to_string(file.path()).unwrap();
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", started.trim()));
        // Init reaps it at some time; until then it is a zombie.
        let is_gone = || state().map_or(true, |stat| stat.contains(") Z "));
        let began = monotonic();
        while !is_gone() {
            assert!(began.elapsed() < Duration::from_secs(60), "{:?}", state());
            std::thread::sleep(LOOK);
        }
    }
}
