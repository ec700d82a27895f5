//! AdminService and ControlService on an address of their own.

use crate::support::command::{Serve, text, weir_command};
use crate::support::control::FILE;
use crate::support::scratch;

#[test]
fn operators_have_a_port_of_their_own_and_callers_no_way_to_their_services() {
    let folder = scratch::dir("control-");
    let with = FILE.replace("admin_service: true,", "admin_service: true, control_listen: '127.0.0.1:0',");
    let file = scratch::file(folder.path(), "weir.yaml", with);
    let server = Serve::start(&["--config", &file.display().to_string()]);
    let line = server.announced.lines().find_map(|line| line.trim().strip_prefix("control ")).unwrap();
    let port = line.trim().split(' ').next().unwrap().to_owned();
    let run = |address: &str, args: &[&str]| {
        let output = weir_command(args).env("WEIR_SERVER", address).output().unwrap();
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    let put = ["control", "put-access", "deny", "bob"];
    let (code, said) = run(&server.server, &put);
    assert_eq!((code, said.contains("UNIMPLEMENTED")), (Some(2), true), "{said}");
    let (code, said) = run(&port, &put);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = run(&server.server, &["allow", "x", "bob"]);
    assert_eq!(code, Some(1), "{said}");
    let (code, said) = run(&port, &["allow", "x", "eve"]);
    assert_eq!((code, said.contains("UNIMPLEMENTED")), (Some(2), true), "{said}");
    for operated in
        [&["lease", "list", "x", "bob"][..], &["queue", "purge", "jobs", "--yes"], &["reset", "x", "bob"]]
    {
        let (code, said) = run(&server.server, operated);
        assert_eq!((code, said.contains("UNIMPLEMENTED")), (Some(2), true), "{operated:?}: {said}");
        let (_, said) = run(&port, operated);
        assert!(!said.contains("UNIMPLEMENTED"), "{operated:?}: {said}");
    }
    server.stop("TERM");
}
