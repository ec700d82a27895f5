//! A refused client can read why.

use std::io::ErrorKind;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::*;

/// Number of tries of each: whether an alert was lost depended on who was faster.
const TRIES: usize = 20;

/// Returns the alert that a client reads which has sent its first request behind the handshake, and reads a little
/// later.
fn alert(server: &Server, config: &Arc<rustls::ClientConfig>) -> String {
    let mut raw = match Raw::connect(server.grpc, Arc::clone(config)) {
        Ok(raw) => raw,
        Err(error) => return error.to_string(),
    };
    let mut stream = Stream::new(&mut raw.tls, &mut raw.socket);
    let sent = stream.write_all(&[PREFACE, &[0; 8 << 10]].concat()).and_then(|()| stream.flush());
    if let Err(error) = sent {
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
        return error.to_string();
    }
    std::thread::sleep(Duration::from_millis(5));
    stream.read(&mut [0; 64]).map_or_else(|error| error.to_string(), |length| format!("{length} bytes"))
}

/// Before, the socket was closed with unread bytes, and most clients saw a broken connection.
#[test]
fn a_refused_client_reads_the_alert() {
    let (authority, foreign) = (Authority::create(), Authority::named("somebody else"));
    let expired = authority.issue_until("expired", &["client"], 2001);
    let bad = foreign.issue("client", &["client"]);
    let server = serve(TransportKind::Fast, mutual(&authority, ClientAuth::Required));
    let clients =
        [(None, "CertificateRequired"), (Some(&expired), "CertificateExpired"), (Some(&bad), "UnknownCA")];
    for (client, expected) in clients {
        let config = client_files(&authority, client);
        for number in 0..TRIES {
            let observed = alert(&server, &config);
            assert!(observed.contains(expected), "{expected}, {number}: {observed}");
        }
    }
}

#[test]
fn openssl_reads_the_alert() {
    let authority = Authority::create();
    let server = serve(TransportKind::Fast, mutual(&authority, ClientAuth::Required));
    for number in 0..TRIES {
        let mut command = Command::new("openssl");
        command.args(["s_client", "-quiet", "-alpn", "h2", "-servername", NAME, "-connect"]);
        command.arg(server.grpc.to_string()).arg("-CAfile").arg(authority.ca_file());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let Ok(mut client) = command.spawn() else { return println!("openssl is not installed") };
        client.stdin.take().unwrap().write_all(PREFACE).unwrap();
        let output = client.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("alert certificate required"), "{number}: {said}");
    }
}
