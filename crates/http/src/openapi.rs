//! The description of the listener: OpenAPI 3.1, made of the descriptors and their comments.

mod comments;
mod examples;
mod schemas;

use std::sync::LazyLock;

use prost::Message as _;
use prost_types::{FileDescriptorProto, FileDescriptorSet, ServiceDescriptorProto};
use serde_json::{Map, Value, json};

use self::comments::Comments;
use self::schemas::Schemas;
use crate::codes::code;

/// The package that is served.
const PACKAGE: &str = "weir.v1";

/// Statuses that have a sentence and no error of Connect.
const SENTENCES: [(&str, &str); 5] = [
    ("404", "There is no such method, or its service is off. Errors of methods have a body in JSON."),
    ("405", "Methods are called by POST."),
    ("414", "The target is longer than 8 KiB."),
    ("415", "The content type is neither application/json nor application/proto."),
    ("431", "The headers have more than 16 KiB or 100 fields."),
];

/// Returns the description as it is served and written to `docs/openapi.json`; `None` if the descriptors cannot be read.
pub(crate) fn openapi_text() -> Option<&'static str> {
    static TEXT: LazyLock<Option<String>> = LazyLock::new(|| Some(format!("{:#}\n", openapi().ok()?)));
    TEXT.as_deref()
}

/// Returns the description; an error if the descriptors cannot be read.
pub fn openapi() -> Result<Value, String> {
    let set = FileDescriptorSet::decode(weir_proto::DESCRIPTORS).map_err(|error| error.to_string())?;
    let (mut paths, mut tags) = (Map::new(), Vec::new());
    for file in set.file.iter().filter(|file| file.package() == PACKAGE) {
        let comments = Comments::new(file);
        for (number, service) in file.service.iter().enumerate() {
            let about = comments.at(&[6, number as i32]);
            tags.push(json!({ "name": service.name(), "description": about }));
            add_methods(&mut paths, file, &comments, (number, service));
        }
    }
    paths.insert("/check/{name}".to_owned(), check());
    paths.insert("/openapi.json".to_owned(), own());
    tags.sort_by_key(|tag| tag["name"].to_string());
    Ok(json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Weir",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Exact rate-limit decisions, by the unary protocol of Connect. docs/http.md describes the listener.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "http://127.0.0.1:8082", "description": "The built-in example." }],
        // Without identity nobody needs a credential.
        "security": [{}, { "bearer": [] }, { "mutualTLS": [] }],
        "tags": tags,
        "paths": paths,
        "components": {
            "securitySchemes": {
                "bearer": { "type": "http", "scheme": "bearer" },
                "mutualTLS": { "type": "mutualTLS" },
            },
            "schemas": Schemas::all(&set, PACKAGE),
        },
    }))
}

fn add_methods(
    paths: &mut Map<String, Value>,
    file: &FileDescriptorProto,
    comments: &Comments,
    (number, service): (usize, &ServiceDescriptorProto),
) {
    for (index, method) in service.method.iter().enumerate() {
        if method.client_streaming() || method.server_streaming() {
            continue;
        }
        let about = comments.at(&[6, number as i32, 2, index as i32]);
        let summary = about.split(['.', ':']).next().unwrap_or_default().to_owned();
        let reference = |name: &str| json!({ "$ref": schemas::reference(name) });
        let examples = examples::answers(method.name());
        let mut answer = json!({ "schema": reference(method.output_type()) });
        if let Some(examples) = examples {
            answer["examples"] = examples;
        }
        let mut responses = Map::new();
        responses.insert(
            "200".to_owned(),
            json!({ "description": "The answer.", "content": { "application/json": answer } }),
        );
        add_errors(&mut responses);
        let operation = json!({
            "operationId": format!("{}_{}", service.name(), method.name()),
            "tags": [service.name()],
            "summary": summary,
            "description": about,
            "parameters": [
                { "name": "Connect-Protocol-Version", "in": "header", "required": false, "schema": { "const": "1" },
                  "description": "Sent by generated clients: unknown fields are ignored then." },
                { "name": "Connect-Timeout-Ms", "in": "header", "required": false,
                  "schema": { "type": "string", "pattern": "^[0-9]{1,10}$" }, "description": "The deadline of the call." },
            ],
            "requestBody": {
                "required": true,
                "content": { "application/json": { "schema": reference(method.input_type()) } },
            },
            "responses": responses,
        });
        let path = format!("/{}.{}/{}", file.package(), service.name(), method.name());
        paths.insert(path, json!({ "post": operation }));
    }
}

/// Adds the statuses of errors, and those without an error of Connect.
fn add_errors(responses: &mut Map<String, Value>) {
    let error = json!({ "application/json": { "schema": { "$ref": "#/components/schemas/connect.Error" } } });
    for number in 1..=16 {
        let (name, status) = code(number);
        let entry = responses
            .entry(status.as_str())
            .or_insert_with(|| json!({ "description": "", "content": error.clone() }));
        let known = entry["description"].as_str().unwrap_or_default();
        let joined = if known.is_empty() { name.to_owned() } else { format!("{known}, {name}") };
        entry["description"] = json!(joined);
    }
    let sentence = json!({ "schema": { "type": "string" } });
    for (status, about) in SENTENCES {
        let entry = responses.entry(status).or_insert_with(|| json!({ "description": "", "content": {} }));
        let known = entry["description"].as_str().unwrap_or_default();
        entry["description"] =
            json!(if known.is_empty() { about.to_owned() } else { format!("{known}. {about}") });
        entry["content"]["text/plain"] = sentence.clone();
    }
}

/// Describes the question of proxies.
fn check() -> Value {
    let text = json!({ "schema": { "type": "string" } });
    let header = |about: &str| json!({ "description": about, "schema": { "type": "string" } });
    let decisions = ["allowed", "limited", "never", "denied", "banned", "degraded", "unavailable", "refused"];
    let headers = json!({
        "Weir-Decision": { "description": "What was decided.", "schema": { "enum": decisions } },
        "Weir-Reason": header("Why."),
        "Cache-Control": { "schema": { "const": "no-store" } },
        "RateLimit": header("What remains of the limit."),
        "RateLimit-Policy": header("The limit and its window."),
        "Retry-After": header("Seconds after which the request would pass."),
        "X-RateLimit-Limit": header("The limit."),
        "X-RateLimit-Remaining": header("What remains."),
        "X-RateLimit-Reset": header("Seconds until the limit is full again."),
    });
    let denied =
        |about: &str| json!({ "description": about, "headers": headers, "content": { "text/plain": text } });
    let responses = json!({
        "200": { "description": "The request may pass.", "headers": headers },
        "403": denied("Waiting does not help, or the question was refused."),
        "404": { "description": "There is no check of this name.", "content": { "text/plain": text } },
        "429": denied("A limit is used up; `limited_status` sets another status."),
        "500": denied("The configuration of the check cannot be right."),
        "503": denied("Nothing was decided; `unavailable_status` sets another status."),
    });
    json!({
        "parameters": [{
            "name": "name", "in": "path", "required": true, "schema": { "type": "string", "pattern": "^[a-z0-9-]{1,64}$" },
        }],
        "get": {
            "operationId": "check",
            "summary": "A proxy asks whether it may pass a request on",
            "description": "Any method is served. What is read of the request, `http.checks` says.",
            "responses": responses,
        },
    })
}

fn own() -> Value {
    json!({ "get": {
        "operationId": "openapi",
        "summary": "This description",
        "security": [{}],
        "responses": { "200": {
            "description": "This description.", "content": { "application/json": { "schema": { "type": "object" } } },
        } },
    } })
}
