//! Templates of indexes, today's and legacy ones.

use super::{index, route};
use crate::call::{Call, Reply};
use crate::cluster::templates::{Template, overlap, patterns, priority};
use crate::cluster::{Cluster, matches};
use crate::error::ApiError;
use crate::node::Node;
use crate::route::{Role, Route, Verb};
use axum::http::StatusCode;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const PUT: &[Verb] = &[Verb::Put, Verb::Post];
const PUTS: [&str; 6] = ["create", "cause", "order", "timeout", "cluster_manager_timeout", "master_timeout"];
const GETS: [&str; 4] = ["flat_settings", "local", "cluster_manager_timeout", "master_timeout"];
const WAITS: [&str; 3] = ["timeout", "cluster_manager_timeout", "master_timeout"];

pub(super) const ROUTES: &[Route] = &[
    route(Role::Admin, PUT, &["/_index_template/{name}"], &PUTS, put_index, "puts a template of indexes"),
    route(
        Role::Read,
        &[Verb::Get],
        &["/_index_template", "/_index_template/{name}"],
        &GETS,
        get_index,
        "templates of indexes",
    ),
    route(
        Role::Read,
        &[Verb::Head],
        &["/_index_template/{name}"],
        &GETS,
        has_index,
        "whether there is such a template",
    ),
    route(
        Role::Admin,
        &[Verb::Delete],
        &["/_index_template/{name}"],
        &WAITS,
        drop_index,
        "drops templates of indexes",
    ),
    route(
        Role::Read,
        &[Verb::Post],
        &["/_index_template/_simulate_index/{index}"],
        &GETS,
        simulate_index,
        "what templates would give an index",
    ),
    route(
        Role::Read,
        &[Verb::Post],
        &["/_index_template/_simulate", "/_index_template/_simulate/{name}"],
        &PUTS,
        simulate,
        "what a template would give an index, one that is given or is there",
    ),
    route(
        Role::Admin,
        PUT,
        &["/_component_template/{name}"],
        &PUTS,
        put_component,
        "puts a part of templates of indexes",
    ),
    route(
        Role::Read,
        &[Verb::Get],
        &["/_component_template", "/_component_template/{name}"],
        &GETS,
        get_component,
        "parts of templates",
    ),
    route(
        Role::Read,
        &[Verb::Head],
        &["/_component_template/{name}"],
        &GETS,
        has_component,
        "whether there is such a part",
    ),
    route(
        Role::Admin,
        &[Verb::Delete],
        &["/_component_template/{name}"],
        &WAITS,
        drop_component,
        "drops parts of templates that no template uses",
    ),
    route(Role::Admin, PUT, &["/_template/{name}"], &PUTS, put_legacy, "puts a legacy template"),
    route(
        Role::Read,
        &[Verb::Get],
        &["/_template", "/_template/{name}"],
        &GETS,
        get_legacy,
        "legacy templates",
    ),
    route(
        Role::Read,
        &[Verb::Head],
        &["/_template/{name}"],
        &GETS,
        has_legacy,
        "whether there is such a template",
    ),
    route(
        Role::Admin,
        &[Verb::Delete],
        &["/_template/{name}"],
        &WAITS,
        drop_legacy,
        "drops legacy templates",
    ),
];

type Templates = BTreeMap<String, Value>;

/// Which templates a request is about.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Index,
    Component,
    Legacy,
}

impl Kind {
    fn of(self, cluster: &Cluster) -> &Templates {
        match self {
            Kind::Index => &cluster.index_templates,
            Kind::Component => &cluster.component_templates,
            Kind::Legacy => &cluster.templates,
        }
    }

    fn of_mut(self, cluster: &mut Cluster) -> &mut Templates {
        match self {
            Kind::Index => &mut cluster.index_templates,
            Kind::Component => &mut cluster.component_templates,
            Kind::Legacy => &mut cluster.templates,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Index => "index template",
            Kind::Component => "component template",
            Kind::Legacy => "index_template",
        }
    }

    fn missing(self, name: &str) -> ApiError {
        let (kind, reason) = match self {
            Kind::Index => {
                ("resource_not_found_exception", format!("index template matching [{name}] not found"))
            }
            Kind::Component => {
                ("resource_not_found_exception", format!("component template matching [{name}] not found"))
            }
            Kind::Legacy => ("index_template_missing_exception", format!("index_template [{name}] missing")),
        };
        ApiError::new(StatusCode::NOT_FOUND, kind, reason)
    }

    /// Checks a template, and brings it into the form in which it is kept.
    fn read(self, cluster: &Cluster, name: &str, mut body: Map<String, Value>) -> Result<Value, ApiError> {
        let known: &[&str] = match self {
            Kind::Index => &["index_patterns", "template", "composed_of", "priority", "version", "_meta"],
            Kind::Component => &["template", "version", "_meta"],
            Kind::Legacy => &["index_patterns", "order", "settings", "mappings", "aliases", "version"],
        };
        let wrong = |what: String| ApiError::argument(format!("{} [{name}]: {what}", self.name()));
        if let Some(other) = body.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(wrong(format!(
                "unknown or unsupported field [{other}]: it takes {}",
                known.join(", ")
            )));
        }
        if let Some(what) = lanewise_engine::wrong_name(name) {
            return Err(wrong(what.to_owned()));
        }
        if self != Kind::Component {
            let listed = match body.remove("index_patterns") {
                Some(Value::String(one)) => vec![one],
                Some(Value::Array(all)) => {
                    let text = |pattern: Value| pattern.as_str().map(str::to_owned);
                    all.into_iter().map(text).collect::<Option<_>>().unwrap_or_default()
                }
                _ => Vec::new(),
            };
            if listed.is_empty() {
                return Err(wrong(
                    "index patterns are missing: give index_patterns, an array of strings".to_owned(),
                ));
            }
            body.insert("index_patterns".to_owned(), json!(listed));
        }
        for number in ["priority", "order", "version"] {
            if body.get(number).is_some_and(|number| number.as_i64().is_none()) {
                return Err(wrong(format!("{number}: give a whole number")));
            }
        }
        let empty = json!({});
        let whole = Value::Object(body.clone());
        let template = if self == Kind::Legacy { &whole } else { body.get("template").unwrap_or(&empty) };
        let fields = template.as_object().ok_or_else(|| wrong("template: give an object".to_owned()))?;
        if self != Kind::Legacy
            && let Some(other) =
                fields.keys().find(|key| !["settings", "mappings", "aliases"].contains(&key.as_str()))
        {
            return Err(wrong(format!("template: unknown field [{other}]")));
        }
        index::check(fields)?;
        for component in body.get("composed_of").and_then(Value::as_array).into_iter().flatten() {
            if !component.as_str().is_some_and(|name| cluster.component_templates.contains_key(name)) {
                return Err(wrong(format!(
                    "component templates [{component}] that are specified do not exist"
                )));
            }
        }
        let made = Value::Object(body);
        if self == Kind::Index {
            index::check(&cluster.composed(&made).body())?;
            check_overlap(cluster, name, &made)?;
        }
        Ok(made)
    }
}

/// Refuses a template that would fit a name as well as another does.
fn check_overlap(cluster: &Cluster, name: &str, made: &Value) -> Result<(), ApiError> {
    let same = |(other, of): &(&String, &Value)| {
        *other != name
            && priority(of) == priority(made)
            && patterns(made).iter().any(|one| patterns(of).iter().any(|other| overlap(one, other)))
    };
    match cluster.index_templates.iter().find(same) {
        None => Ok(()),
        Some((other, of)) => Err(ApiError::argument(format!(
            "index template [{name}] has index patterns [{}] matching patterns from existing templates [{other}] with \
             patterns ({other} => [{}]) that have the same priority [{}], multiple index templates may not match during \
             index creation, please use a different priority",
            patterns(made).join(", "),
            patterns(of).join(", "),
            priority(made)
        ))),
    }
}

fn put(node: &Node, call: &Call, kind: Kind) -> Result<Reply, ApiError> {
    let name = call.name("name").unwrap_or_default();
    let mut body = call.object()?;
    if let (Kind::Legacy, Some(order)) = (kind, call.params.parsed::<i64>("order")?) {
        body.entry("order").or_insert(json!(order));
    }
    let create = call.params.flag("create", false)?;
    node.store.change(|cluster| {
        if create && kind.of(cluster).contains_key(name) {
            return Err(ApiError::argument(format!("{} [{name}] already exists", kind.name())));
        }
        let made = kind.read(cluster, name, body)?;
        kind.of_mut(cluster).insert(name.to_owned(), made);
        if kind == Kind::Component {
            let users = cluster.index_templates.values();
            users
                .map(|template| cluster.composed(template).body())
                .try_for_each(|body| index::check(&body))?;
        }
        Ok(())
    })?;
    Ok(Reply::json(json!({"acknowledged": true})))
}

/// Those that a call names.
fn named<'a>(
    cluster: &'a Cluster,
    call: &Call,
    kind: Kind,
) -> Result<Vec<(&'a String, &'a Value)>, ApiError> {
    let Some(names) = call.name("name") else { return Ok(kind.of(cluster).iter().collect()) };
    let mut found = Vec::new();
    for name in names.split(',') {
        let before = found.len();
        found.extend(kind.of(cluster).iter().filter(|(known, _)| matches(name, known)));
        if found.len() == before && !name.contains('*') {
            return Err(kind.missing(name));
        }
    }
    Ok(found)
}

fn get(node: &Node, call: &Call, kind: Kind) -> Result<Reply, ApiError> {
    let cluster = node.cluster();
    let found = named(&cluster, call, kind)?;
    let nested = |template: &Value| {
        let mut sum = Template::default();
        sum.add(template);
        let mut shown = sum.shown();
        let absent = |name: &str| template.get(name).is_none();
        if let Some(fields) = shown.as_object_mut() {
            fields.retain(|name, _| kind == Kind::Legacy || !absent(name));
        }
        shown
    };
    let told = |template: &Value| {
        let mut told = template.clone();
        if kind == Kind::Legacy {
            super::extend(&mut told, nested(template));
            super::extend(&mut told, json!({"order": template["order"].as_i64().unwrap_or(0)}));
        } else if let Some(inner) = template.get("template") {
            told["template"] = nested(inner);
        }
        if kind == Kind::Index {
            super::extend(
                &mut told,
                json!({"composed_of": template.get("composed_of").unwrap_or(&json!([]))}),
            );
        }
        told
    };
    let list = |key: &str| {
        let one = |(name, template): &(&String, &Value)| {
            let mut one = json!({"name": name});
            one[key] = told(template);
            one
        };
        found.iter().map(one).collect::<Vec<_>>()
    };
    Ok(Reply::json(match kind {
        Kind::Index => json!({"index_templates": list("index_template")}),
        Kind::Component => json!({"component_templates": list("component_template")}),
        Kind::Legacy => found
            .iter()
            .map(|(name, template)| ((*name).clone(), told(template)))
            .collect::<Map<_, _>>()
            .into(),
    }))
}

fn drop_named(node: &Node, call: &Call, kind: Kind) -> Result<Reply, ApiError> {
    node.store.change(|cluster| {
        let names: Vec<String> = named(cluster, call, kind)?.into_iter().map(|(name, _)| name.clone()).collect();
        for name in &names {
            let uses = |template: &Value| template["composed_of"].as_array().is_some_and(|all| all.contains(&json!(name)));
            let user = cluster.index_templates.iter().find(|(_, template)| uses(template));
            if let (Kind::Component, Some((user, _))) = (kind, user) {
                return Err(ApiError::argument(format!(
                    "component templates [{name}] cannot be removed as they are still in use by index templates [{user}]"
                )));
            }
            kind.of_mut(cluster).remove(name);
        }
        Ok(())
    })?;
    Ok(Reply::json(json!({"acknowledged": true})))
}

fn has(node: &Node, call: &Call, kind: Kind) -> Reply {
    Reply::exists(named(&node.cluster(), call, kind).is_ok_and(|found| !found.is_empty()))
}

/// The templates that would fit, were they not less than the one that does.
fn overlapping(cluster: &Cluster, name: &str, but: Option<&str>) -> Value {
    let fits = |template: &&Value| patterns(template).iter().any(|pattern| overlap(pattern, name));
    let all = cluster.index_templates.iter().chain(&cluster.templates);
    let others = all.filter(|(other, template)| Some(other.as_str()) != but && fits(template));
    others.map(|(name, template)| json!({"name": name, "index_patterns": patterns(template)})).collect()
}

fn simulate_index(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let cluster = node.cluster();
    let name = call.name("index").unwrap_or_default();
    let which = cluster.template_for(name).map(|(name, _)| name);
    let overlapping = overlapping(&cluster, name, which);
    Ok(Reply::json(json!({"template": cluster.given_to(name).shown(), "overlapping": overlapping})))
}

fn simulate(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    let cluster = node.cluster();
    let (name, body) = (call.name("name"), call.object()?);
    let made = match (name, body.is_empty()) {
        (Some(name), true) => {
            cluster.index_templates.get(name).cloned().ok_or_else(|| Kind::Index.missing(name))?
        }
        (_, false) => Kind::Index.read(&cluster, name.unwrap_or("simulated"), body)?,
        (None, true) => return Err(ApiError::argument("request body is required: a template")),
    };
    let others: Vec<Value> = patterns(&made)
        .iter()
        .flat_map(|pattern| overlapping(&cluster, pattern, name).as_array().cloned().unwrap_or_default())
        .collect();
    Ok(Reply::json(json!({"template": cluster.composed(&made).shown(), "overlapping": others})))
}

fn put_index(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    put(node, call, Kind::Index)
}

fn get_index(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    get(node, call, Kind::Index)
}

fn has_index(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    Ok(has(node, call, Kind::Index))
}

fn drop_index(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    drop_named(node, call, Kind::Index)
}

fn put_component(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    put(node, call, Kind::Component)
}

fn get_component(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    get(node, call, Kind::Component)
}

fn has_component(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    Ok(has(node, call, Kind::Component))
}

fn drop_component(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    drop_named(node, call, Kind::Component)
}

fn put_legacy(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    put(node, call, Kind::Legacy)
}

fn get_legacy(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    get(node, call, Kind::Legacy)
}

fn has_legacy(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    Ok(has(node, call, Kind::Legacy))
}

fn drop_legacy(node: &Node, call: &mut Call) -> Result<Reply, ApiError> {
    drop_named(node, call, Kind::Legacy)
}
