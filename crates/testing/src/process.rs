//! Child processes that cannot outlive the test binary.
//!
//! Each is killed on drop. For those that are never dropped (statics, a killed test binary) the kernel
//! does it: `setpriv --pdeathsig KILL` asks for a signal when the parent dies. The parent is a *thread*
//! here, and every test has its own short-lived one, so all spawning is done by one lasting thread.

use std::io;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{OnceLock, mpsc};

/// A running child process. Killed on drop.
#[derive(Debug)]
pub struct Process {
    child: Child,
    frozen: bool,
}

impl Process {
    /// A command for [`Process::spawn`]: runs `program`, tied to the life of the test binary.
    /// Without a usable `setpriv` (it is part of Linux's util-linux) only the drop ends it.
    pub fn command(program: &str) -> Command {
        if has_setpriv() {
            let mut command = Command::new("setpriv");
            command.args(["--pdeathsig", "KILL", "--", program]);
            command
        } else {
            Command::new(program)
        }
    }

    /// Starts `command`, with no standard input.
    pub fn spawn(mut command: Command) -> io::Result<Self> {
        command.stdin(Stdio::null());
        let (answer, child) = mpsc::channel();
        spawner().send((command, answer)).expect("the spawner lives as long as the process");
        let child = child.recv().expect("the spawner answers every request")?;
        Ok(Self { child, frozen: false })
    }

    /// The process id: `setpriv` replaces itself by the program, so it is the program's own.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The child itself, for the pipes to its output if the command asked for some.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Returns its exit status, if it has ended.
    pub fn exited(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("ask for the state of a child process")
    }

    /// True if it runs and is not frozen.
    pub fn is_responsive(&mut self) -> bool {
        !self.frozen && self.exited().is_none()
    }

    /// Kills it without warning (SIGKILL), also when it is frozen, and waits for its end.
    pub fn kill(&mut self) -> ExitStatus {
        self.child.kill().expect("kill a child process");
        self.child.wait().expect("wait for a killed child process")
    }

    /// Suspends it (SIGSTOP): its connections stay open, and nothing answers.
    pub fn freeze(&mut self) {
        self.signal("STOP");
        self.frozen = true;
    }

    /// Resumes it after [`Process::freeze`].
    pub fn thaw(&mut self) {
        self.signal("CONT");
        self.frozen = false;
    }

    /// Sends a signal by its name without "SIG", such as "TERM".
    pub fn signal(&mut self, name: &str) {
        assert!(self.exited().is_none(), "the process that SIG{name} is for has ended");
        // The shell's own `kill`: a program of that name is not installed everywhere.
        let pid = self.pid().to_string();
        let sent = Command::new("sh").args(["-c", "kill -s \"$1\" \"$2\"", "sh", name, &pid]).status();
        assert!(sent.expect("run sh").success(), "SIG{name} could not be sent");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only for a process that is already gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

type ProcessRequest = (Command, mpsc::Sender<io::Result<Child>>);

fn spawner() -> &'static mpsc::Sender<ProcessRequest> {
    static SPAWNER: OnceLock<mpsc::Sender<ProcessRequest>> = OnceLock::new();
    SPAWNER.get_or_init(|| {
        let (requests, inbox) = mpsc::channel::<ProcessRequest>();
        let serve = move || {
            for (mut command, answer) in inbox {
                let _ = answer.send(command.spawn()); // nobody waits when the asking test has panicked
            }
        };
        std::thread::Builder::new().name("spawner".into()).spawn(serve).expect("start the spawner thread");
        requests
    })
}

fn has_setpriv() -> bool {
    static WORKS: OnceLock<bool> = OnceLock::new();
    *WORKS.get_or_init(|| {
        let mut probe = Command::new("setpriv");
        probe.args(["--pdeathsig", "KILL", "--", "true"]).stdout(Stdio::null()).stderr(Stdio::null());
        probe.status().is_ok_and(|status| status.success())
    })
}
