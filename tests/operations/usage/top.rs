//! `weir top`, and the commands of docs/usage.md.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use weir_proto::DESCRIPTORS;
use weir_proto::v1::{GetUsageRequest, TopConsumersRequest};
use weir_usage::{UsageConfig, with_usage};

use super::usage_of;
use crate::support::command::{WEIR, text, weir};
use crate::support::server::{Server, ask, ask_under, config};

async fn served() -> Server {
    let usage = UsageConfig { sample: 1, ..UsageConfig::default() };
    let server = Server::start_by_the_system(with_usage(config(), usage));
    let mut client = server.client().await;
    for _ in 0..8 {
        client.should_allow(ask("burst/a", "bob\u{1b}[2J\u{202e}")).await.unwrap();
        client.should_allow(ask_under("open", "x", "alice")).await.unwrap();
    }
    // A page shows whole seconds.
    let second = || std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let asked = second();
    crate::support::eventually(crate::support::SOON, "the next second", || second() > asked);
    server
}

#[tokio::test]
async fn a_pipe_gets_one_page_of_text() {
    let server = served().await;
    let address = server.grpc.to_string();
    for once in [&["--once"][..], &[]] {
        let output = weir(&[&["top", "--server", &address], once].concat());
        let page = text(&output.stdout);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let row = |name: &str| {
            let line = page.lines().find(|line| line.trim_start().starts_with(name));
            line.unwrap_or_else(|| panic!("no {name}:\n{page}")).split_whitespace().collect::<Vec<_>>()
        };
        let burst = row("burst");
        assert_eq!([burst[1], burst[5], burst[6]], ["burst/*", "8", "3"], "{page}");
        assert_eq!(
            row("bob\\u001b[2J\\u202e"),
            ["bob\\u001b[2J\\u202e", "burst", "3"],
            "no terminal obeys a name: {page}"
        );
        assert!(!page.contains(['\u{1b}', '\u{202e}']));
    }
    let output = weir(&["top", "--once", "--server", &address, "--strategy", "open", "--consumers", "1h"]);
    let page = text(&output.stdout);
    assert!(page.contains("last hour") && page.contains("alice") && !page.contains("burst"), "{page}");
}

#[test]
fn without_a_server_it_says_so() {
    let output = weir(&["top", "--once", "--server", "127.0.0.1:1"]);
    assert_eq!(output.status.code(), Some(2));
    let error = text(&output.stderr);
    assert!(error.starts_with("error: no server answers; ") && error.contains("at 127.0.0.1:1"), "{error}");
}

#[tokio::test]
async fn a_terminal_shows_it_live_until_q_is_pressed() {
    let server = served().await;
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let inside = rustix::fs::open(&*name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    tcsetwinsize(&inside, Winsize { ws_row: 24, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let end = || Stdio::from(inside.try_clone().unwrap());
    let mut top = Command::new(WEIR)
        .args(["top", "--every", "50ms", "--server", &server.grpc.to_string()])
        .env("TERM", "xterm")
        .stdin(end())
        .stdout(end())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    drop(inside);
    let mut terminal = File::from(terminal);
    let (mut shown, mut part) = (Vec::new(), [0; 4096]);
    // Blanks are passed over: the screen has them already.
    while !text(&shown).contains("most,") {
        let read = terminal.read(&mut part).unwrap();
        assert!(read > 0, "{}", text(&shown));
        shown.extend_from_slice(&part[..read]);
    }
    terminal.write_all(b"hq").unwrap();
    // What it writes last is read until it closes the terminal.
    while let Ok(1..) = terminal.read(&mut part) {}
    assert!(top.wait().unwrap().success());
    assert!(text(&shown).contains("burst/*"), "{}", text(&shown));
}

/// Every call of the page is one that the server understands, and every command one that runs.
#[tokio::test]
async fn the_commands_of_the_document_run_as_written() {
    let page = include_str!("../../../docs/usage.md");
    let server = served().await;
    let mut usage = usage_of(&server).await;
    let pool = DescriptorPool::decode(DESCRIPTORS).unwrap();
    let parsed = |name: &str, json: &str| {
        let message = pool.get_message_by_name(name).unwrap();
        let mut json = serde_json::Deserializer::from_str(json);
        DynamicMessage::deserialize(message, &mut json).unwrap().encode_to_vec()
    };
    let (mut calls, mut commands) = (0, 0);
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("grpcurl -plaintext -d '") {
            let (json, rest) = rest.split_once("' ").unwrap();
            if rest.ends_with("GetUsage") {
                let request = parsed("weir.v1.GetUsageRequest", json);
                usage.get_usage(GetUsageRequest::decode(&*request).unwrap()).await.unwrap();
            } else {
                let request = parsed("weir.v1.TopConsumersRequest", json);
                usage.top_consumers(TopConsumersRequest::decode(&*request).unwrap()).await.unwrap();
            }
            calls += 1;
        }
        if let Some(args) = line.strip_prefix("weir ") {
            let args: Vec<&str> = args.split('#').next().unwrap().split_whitespace().collect();
            let address = server.grpc.to_string();
            let output = weir(&[&args[..], &["--server", &address]].concat());
            assert!(output.status.success(), "{line}: {}", text(&output.stderr));
            commands += 1;
        }
    }
    assert_eq!((calls, commands), (2, 4));
}
