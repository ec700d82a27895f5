//! What the images start: their environment, entry point and command, as deploy/Dockerfile says.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tonic::transport::Endpoint;
use weir_proto::envoy::service::ratelimit::v3::rate_limit_response::Code;
use weir_proto::envoy::service::ratelimit::v3::rate_limit_service_client::RateLimitServiceClient;

use super::{FILE, Ratelimit, command, files, host, request, variables};
use crate::support::clients::root;
use crate::support::command::WEIR;
use crate::support::{Process, SOON, eventually, scratch};

/// What a target of the Dockerfile starts, with what it has of the stages below it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Image {
    environment: Vec<(String, String)>,
    entry_point: Vec<String>,
    command: Vec<String>,
}

impl Image {
    fn of(target: &str) -> Self {
        let text = std::fs::read_to_string(root().join("deploy/Dockerfile")).unwrap().replace("\\\n", " ");
        let mut stages = std::collections::BTreeMap::<String, Self>::new();
        let mut current = String::new();
        for line in text.lines() {
            let Some((instruction, rest)) = line.trim().split_once(' ') else { continue };
            let words = || serde_json::from_str::<Vec<String>>(rest).unwrap();
            match instruction {
                "FROM" => {
                    let (base, name) = rest.split_once(" AS ").unwrap();
                    let below = stages.get(base).cloned().unwrap_or_default();
                    stages.insert(name.to_owned(), below);
                    name.clone_into(&mut current);
                }
                "ENV" => {
                    let pairs = rest.split_whitespace().map(|pair| pair.split_once('=').unwrap());
                    let pairs =
                        pairs.map(|(name, value)| (name.to_owned(), value.trim_matches('"').to_owned()));
                    stages.get_mut(&current).unwrap().environment.extend(pairs);
                }
                "ENTRYPOINT" => stages.get_mut(&current).unwrap().entry_point = words(),
                "CMD" => stages.get_mut(&current).unwrap().command = words(),
                _ => {}
            }
        }
        stages.remove(target).unwrap()
    }
}

/// The files of the image that a container starts, in a directory.
struct Programs(TempDir);

impl Programs {
    fn new() -> Self {
        let folder = scratch::dir("image-");
        symlink(WEIR, folder.path().join("weir")).unwrap();
        std::fs::create_dir(folder.path().join("bin")).unwrap();
        symlink(WEIR, folder.path().join("bin/ratelimit")).unwrap();
        Self(folder)
    }

    fn path(&self, of_image: &str) -> PathBuf {
        self.0.path().join(of_image.trim_start_matches('/'))
    }
}

/// Starts a container of an image with these arguments in place of its command, and these variables.
fn start(target: &str, arguments: Option<&[&str]>, more: &[(&str, &str)]) -> (Ratelimit, Programs) {
    let (image, programs, files, host) = (Image::of(target), Programs::new(), files(FILE), host());
    let mut environment = image.environment;
    environment.extend(variables(files.path(), host));
    environment.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    let arguments =
        arguments.map_or(image.command, |words| words.iter().map(|&word| word.to_owned()).collect());
    let mut words = image.entry_point.iter().chain(&arguments);
    let program = programs.path(words.next().unwrap());
    // All addresses of a container are one of this machine.
    let words: Vec<String> = words.map(|word| word.replace("0.0.0.0", &host.to_string())).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let process = Process::spawn(command(&program, &words, &environment)).unwrap();
    (Ratelimit { process, host, _files: files }, programs)
}

fn healthy(started: &mut Ratelimit, path: &str) {
    eventually(SOON, "it is healthy", || {
        if let Some(status) = started.process.exited() {
            panic!("it ended: {status}\n{}", started.log());
        }
        started.get(8080, path).is_some_and(|(status, _)| status == 200)
    });
}

/// A variable of the image would win over those of the launcher.
#[test]
fn no_image_sets_variables() {
    for target in ["weir", "weir-ratelimit"] {
        assert_eq!(Image::of(target).environment, [], "{target}");
    }
    assert_eq!(Image::of("weir").entry_point, ["/weir"]);
    assert_eq!(Image::of("weir-ratelimit").entry_point, ["/bin/ratelimit"]);
}

/// Without a command it is `weir serve` on all addresses, with what is needed to be asked from outside.
#[test]
fn weir_without_a_command_serves_itself() {
    let (mut started, _programs) = start("weir", None, &[]);
    healthy(&mut started, "/readyz");
    assert!(std::net::TcpStream::connect(started.at(8081)).is_ok());
    let (status, page) = started.get(8080, "/metrics").unwrap();
    assert!(status == 200 && page.contains("weir_decisions_total"), "{page}");
    assert_eq!(started.stop().0, Some(0));
}

#[tokio::test]
async fn the_command_of_a_launcher_starts_it_in_the_place_of_ratelimit() {
    for (target, arguments) in [
        ("weir", Some(&["/bin/ratelimit", "-config", "F"][..])),
        ("weir-ratelimit", None),
        ("weir-ratelimit", Some(&["-config", "F"])),
    ] {
        let (mut started, _programs) = start(target, arguments, &[]);
        healthy(&mut started, "/healthcheck");
        let codes = [started.asks("v").await, started.asks("v").await, started.asks("v").await];
        assert_eq!(codes, [Code::Ok, Code::Ok, Code::OverLimit], "{target} {arguments:?}");
        assert_eq!(started.stop().0, Some(0));
    }
}

#[tokio::test]
async fn its_variables_are_not_overridden_by_the_image() {
    let words = Some(&["/bin/ratelimit"][..]);
    let (mut started, _programs) = start("weir", words, &[("GRPC_PORT", "9000")]);
    healthy(&mut started, "/healthcheck");
    let mut client = RateLimitServiceClient::new(started.channel(9000).await);
    let answer = client.should_rate_limit(request("v")).await.unwrap();
    assert_eq!(answer.into_inner().overall_code(), Code::Ok);
    assert!(std::net::TcpStream::connect(started.at(8081)).is_err());
    drop(started);

    let folder = scratch::dir("uds-");
    let path = folder.path().join("ratelimit.sock");
    let (mut started, _programs) = start("weir", words, &[("GRPC_UDS", path.to_str().unwrap())]);
    healthy(&mut started, "/healthcheck");
    assert!(std::net::TcpStream::connect(started.at(8081)).is_err());
    let channel = Endpoint::from_shared(format!("unix:{}", path.display())).unwrap().connect().await.unwrap();
    let answer = RateLimitServiceClient::new(channel).should_rate_limit(request("v")).await.unwrap();
    assert_eq!(answer.into_inner().overall_code(), Code::Ok);
    let _: &Path = &path;
}
