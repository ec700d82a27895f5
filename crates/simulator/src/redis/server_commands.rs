//! Commands about the server and the connection.

use super::error_text::SimulatedError;
use super::node_state::unknown;
use super::numbers::integer;
use super::reply::{CommandResult, RespVersion, SimulatedReply};
use super::server_core::ServerCore;
use super::session_state::SessionState;
use super::slots::slot_of;

/// The version that this server behaves like.
const VERSION: &str = "7.0.15";

pub(super) fn hello(session: &mut SessionState, core: &ServerCore, args: &[Vec<u8>]) -> CommandResult {
    const NOPROTO: SimulatedError = SimulatedError::new("NOPROTO unsupported protocol version");
    if let Some(version) = args.get(1) {
        session.version = match integer(version) {
            Ok(2) => RespVersion::Two,
            Ok(3) => RespVersion::Three,
            _ => return Err(NOPROTO),
        };
    }
    let mut words = args.iter().skip(2);
    while let Some(word) = words.next() {
        match word.to_ascii_uppercase().as_slice() {
            b"AUTH" => {
                words.next().zip(words.next()).ok_or(SimulatedError::SYNTAX)?;
            }
            b"SETNAME" => session.name = words.next().ok_or(SimulatedError::SYNTAX)?.clone(),
            _ => return Err(SimulatedError::SYNTAX),
        }
    }
    let node = core.node.lock();
    let text = |text: &str| SimulatedReply::bulk(text);
    Ok(SimulatedReply::Map(vec![
        (text("server"), text("redis")),
        (text("version"), text(VERSION)),
        (text("proto"), SimulatedReply::Int(if session.version == RespVersion::Three { 3 } else { 2 })),
        (text("id"), SimulatedReply::Int(session.id)),
        (text("mode"), text(if node.slots.is_some() { "cluster" } else { "standalone" })),
        (text("role"), text(if node.is_replica { "replica" } else { "master" })),
        (text("modules"), SimulatedReply::Array(Vec::new())),
    ]))
}

pub(super) fn client(session: &mut SessionState, args: &[Vec<u8>]) -> CommandResult {
    let does = args.get(1).ok_or_else(|| SimulatedError::arity("client"))?.to_ascii_uppercase();
    match (does.as_slice(), &args[2..]) {
        (b"ID", []) => Ok(SimulatedReply::Int(session.id)),
        (b"SETNAME", [name]) => {
            session.name.clone_from(name);
            Ok(SimulatedReply::OK)
        }
        (b"GETNAME", []) => {
            Ok(SimulatedReply::optional(Some(session.name.clone()).filter(|it| !it.is_empty())))
        }
        (b"SETINFO", [_, _]) => Ok(SimulatedReply::OK),
        (does, _) => {
            let does = String::from_utf8_lossy(does);
            Err(SimulatedError::from_text(format!("ERR unknown subcommand '{does}'. Try CLIENT HELP.")))
        }
    }
}

/// AUTH fails: the server has no passwords.
pub(super) fn auth(args: &[Vec<u8>]) -> CommandResult {
    match args {
        [_, _] => Err(SimulatedError::new(
            "ERR AUTH <password> called without any password configured for the default user. Are you sure your \
             configuration is correct?",
        )),
        [_, user, _] if user == b"default" => Ok(SimulatedReply::OK),
        [_, _, _] => {
            Err(SimulatedError::new("WRONGPASS invalid username-password pair or user is disabled."))
        }
        _ => Err(SimulatedError::arity("auth")),
    }
}

/// SELECT accepts the only database.
pub(super) fn select(args: &[Vec<u8>]) -> CommandResult {
    match args {
        [_, database] if integer(database)? == 0 => Ok(SimulatedReply::OK),
        [_, _] => Err(SimulatedError::new("ERR DB index is out of range")),
        _ => Err(SimulatedError::arity("select")),
    }
}

pub(super) fn info(core: &ServerCore, args: &[Vec<u8>]) -> SimulatedReply {
    let node = core.node.lock();
    let [own, former] = &node.histories;
    let role = if node.is_replica { "slave" } else { "master" };
    let sections = [
        ("Server", format!("redis_version:{VERSION}\r\nprocess_id:{}\r\n", core.process_id)),
        ("Memory", "used_memory:1000000\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n".to_owned()),
        ("Stats", "expired_keys:0\r\nevicted_keys:0\r\n".to_owned()),
        ("Replication", format!("role:{role}\r\nmaster_replid:{own}\r\nmaster_replid2:{former}\r\n")),
        ("Cluster", format!("cluster_enabled:{}\r\n", u8::from(node.slots.is_some()))),
    ];
    let is_asked = |name: &str| {
        args.len() == 1 || args[1..].iter().any(|section| section.eq_ignore_ascii_case(name.as_bytes()))
    };
    let asked = sections.iter().filter(|(name, _)| is_asked(name));
    let text: Vec<String> = asked.map(|(name, lines)| format!("# {name}\r\n{lines}")).collect();
    SimulatedReply::bulk(text.join("\r\n"))
}

pub(super) fn role(core: &ServerCore) -> SimulatedReply {
    let node = core.node.lock();
    if !node.is_replica {
        let parts =
            [SimulatedReply::bulk("master"), SimulatedReply::Int(0), SimulatedReply::Array(Vec::new())];
        return SimulatedReply::Array(parts.into());
    }
    let text = |text: &str| SimulatedReply::bulk(text);
    let place = [text("slave"), text(""), SimulatedReply::Int(0)];
    SimulatedReply::Array(place.into_iter().chain([text("connected"), SimulatedReply::Int(0)]).collect())
}

pub(super) fn cluster(core: &ServerCore, args: &[Vec<u8>]) -> CommandResult {
    let does = args.get(1).ok_or_else(|| SimulatedError::arity("cluster"))?.to_ascii_uppercase();
    let mut node = core.node.lock();
    if does == b"KEYSLOT" && args.len() == 3 && node.slots.is_some() {
        return Ok(SimulatedReply::Int(slot_of(&args[2]).into()));
    }
    if does == b"COUNTKEYSINSLOT" {
        return node.count_keys_in_slot(args);
    }
    let Some(slots) = &node.slots else {
        return Err(SimulatedError::new("ERR This instance has cluster support disabled"));
    };
    match does.as_slice() {
        b"SLOTS" => Ok(slots.slots_reply()),
        b"MYID" => Ok(SimulatedReply::bulk(slots.own.id())),
        _ => Err(unknown(args)),
    }
}
