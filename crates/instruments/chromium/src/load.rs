//! Loads of one page, one after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use page::Page;
use page::content::{Content, Origin, for_browser};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::Error;
use crate::devtools::DevTools;
use crate::process::Chromium;
use crate::recording::{Recording, Visit};

/// Loaded once after the start, so that what a browser does but once is in no visit.
const WARM_UP: &str = "data:text/html,<!doctype html><title>x</title><script>1</script><p>warm";
/// How long that may take.
const WARM_UP_LIMIT: Duration = Duration::from_secs(60);
/// A page that has fired its load event, waits for nothing and has asked for nothing for so long, beyond
/// its longest computation, will not ask for what is missing.
const QUIET: Duration = Duration::from_secs(2);
/// Most bytes of one cookie's name and value together (RFC 6265bis §5.4; Chromium keeps to it).
const MOST_COOKIE: u64 = 4096;

/// A page as a browser is to load it.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The page with its objects and hosts, as [`for_browser`] has it.
    pub page: Page,
    /// As it is served.
    pub content: Content,
    /// Where it is served.
    pub origin: Origin,
}

impl Wanted {
    /// A page that is served there, with as many bytes in its documents as a browser needs.
    ///
    /// # Errors
    /// [`Error::Content`].
    pub fn new(page: &Page, origin: Origin) -> Result<Wanted, Error> {
        let page = for_browser(page);
        let content = Content::of(&page, origin)?;
        Ok(Wanted { page, content, origin })
    }

    fn url(&self) -> &str {
        self.content.urls.get(self.page.root().index()).map_or("", String::as_str)
    }

    /// Cookies that make each host's requests longer by what most of its objects say.
    fn cookies(&self) -> Vec<Value> {
        let mut by_host: BTreeMap<_, BTreeMap<u64, usize>> = BTreeMap::new();
        for object in self.page.objects() {
            let lengths = by_host.entry(object.host).or_default();
            *lengths.entry(object.request_extra.count()).or_default() += 1;
        }
        let mut cookies = Vec::new();
        for (host, lengths) in by_host {
            let usual = lengths.into_iter().max_by_key(|(_, count)| *count);
            let (Some((mut left, _)), Some(host)) = (usual, self.page.host(host)) else { continue };
            let scheme = if self.origin.secure { "https" } else { "http" };
            let url = format!("{scheme}://{host}:{}/", self.origin.port);
            // A name, `=` and a byte are the least; two cookies have `; ` between them.
            while left > 3 {
                let length = left.min(MOST_COOKIE);
                let name = format!("{:x}", cookies.len() % 16);
                let value = "c".repeat(usize::try_from(length - 2).unwrap_or(0));
                let mut cookie = json!({ "url": url, "name": name, "value": value });
                if self.origin.secure {
                    cookie["secure"] = json!(true);
                    cookie["sameSite"] = json!("None");
                }
                cookies.push(cookie);
                left = left.saturating_sub(length + 2);
            }
        }
        cookies
    }

    fn quiet(&self) -> Duration {
        let delays = self.page.objects().iter().filter_map(|object| object.found);
        QUIET + delays.map(|found| found.delay.duration()).max().unwrap_or_default()
    }
}

/// Loads of one page by a browser that runs, to be used on the node's thread.
pub struct Load {
    devtools: DevTools,
    wanted: Wanted,
    /// The browser context of the visit before.
    context: Option<String>,
    /// Connections of visits before in the same context.
    connections: BTreeSet<u64>,
}

impl Load {
    /// Connects to a browser's DevTools, and lets it load a page of its own first.
    ///
    /// # Errors
    /// DevTools cannot be reached, or does not answer as it should.
    pub async fn begin(address: Address, wanted: Wanted) -> Result<Load, Error> {
        let devtools = DevTools::connect(&address.0).await?;
        let mut load = Load { devtools, wanted, context: None, connections: BTreeSet::new() };
        load.new_context().await?;
        load.go(WARM_UP, WARM_UP_LIMIT).await?;
        Ok(load)
    }

    /// Loads the page in a browser that keeps nothing of the visit before.
    ///
    /// # Errors
    /// As [`Load::begin`]. What does not come is no error.
    pub async fn first(&mut self, limit: Duration) -> Result<Visit, Error> {
        self.new_context().await?;
        self.visit(limit).await
    }

    /// Loads the page again, with everything kept of the visit before: cache, names, connections.
    ///
    /// # Errors
    /// As [`Load::first`].
    pub async fn again(&mut self, limit: Duration) -> Result<Visit, Error> {
        self.go("about:blank", WARM_UP_LIMIT).await?;
        self.visit(limit).await
    }

    /// Closes the page, and with it its connections.
    ///
    /// # Errors
    /// As [`Load::begin`].
    pub async fn forget(&mut self) -> Result<(), Error> {
        self.devtools.use_session(None);
        self.connections.clear();
        if let Some(context) = self.context.take() {
            let params = json!({ "browserContextId": context });
            self.devtools.browser("Target.disposeBrowserContext", params).await?;
        }
        Ok(())
    }

    async fn new_context(&mut self) -> Result<(), Error> {
        self.forget().await?;
        let devtools = &mut self.devtools;
        let command = "Target.createBrowserContext";
        let made = devtools.browser(command, json!({ "disposeOnDetach": true })).await?;
        let context = text(&made, command, "browserContextId")?;
        self.context = Some(context.clone());
        let command = "Target.createTarget";
        let params = json!({ "url": "about:blank", "browserContextId": context });
        let target = text(&devtools.browser(command, params).await?, command, "targetId")?;
        let command = "Target.attachToTarget";
        let params = json!({ "targetId": target, "flatten": true });
        let session = text(&devtools.browser(command, params).await?, command, "sessionId")?;
        devtools.use_session(Some(session));
        devtools.page("Page.enable", json!({})).await?;
        // DevTools' own copies of bodies would take memory and time.
        let no_copies = json!({ "maxTotalBufferSize": 1, "maxResourceBufferSize": 1 });
        devtools.page("Network.enable", no_copies).await?;
        let script = json!({ "source": self.wanted.content.script });
        devtools.page("Page.addScriptToEvaluateOnNewDocument", script).await?;
        let cookies = self.wanted.cookies();
        if !cookies.is_empty() {
            devtools.page("Network.setCookies", json!({ "cookies": cookies })).await?;
        }
        Ok(())
    }

    /// Goes to a page that is none of what is measured, and waits for its load event.
    async fn go(&mut self, url: &str, limit: Duration) -> Result<(), Error> {
        let deadline = Instant::now() + limit;
        self.devtools.forget_events();
        self.devtools.begin("Page.navigate", json!({ "url": url })).await?;
        while let Some((name, _)) = self.devtools.event(deadline).await? {
            if name == "Page.loadEventFired" {
                return Ok(());
            }
        }
        Err(Error::Late { command: "Page.navigate", limit })
    }

    async fn visit(&mut self, limit: Duration) -> Result<Visit, Error> {
        let deadline = Instant::now() + limit;
        let quiet = self.wanted.quiet();
        let mut recording = Recording::new(&self.wanted, &self.connections);
        self.devtools.forget_events();
        self.devtools.begin("Page.navigate", json!({ "url": self.wanted.url() })).await?;
        while !recording.is_done() {
            let patience = match recording.is_idle() {
                true => deadline.min(Instant::now() + quiet),
                false => deadline,
            };
            match self.devtools.event(patience).await? {
                Some((name, params)) => recording.event(&name, params),
                None => break,
            }
        }
        let visit = recording.finish();
        self.connections.extend(visit.loaded.connections.iter().map(|one| one.id.0));
        Ok(visit)
    }
}

/// Where a browser's DevTools listens: of use on its node's thread alone.
#[derive(Debug, Clone)]
pub struct Address(pub(crate) crate::process::Address);

impl Chromium {
    /// Where its DevTools listens.
    #[must_use]
    pub fn address(&self) -> Address {
        Address(self.address.clone())
    }
}

pub(crate) fn text(
    answer: &Value,
    command: &'static str,
    field: &'static str,
) -> Result<String, Error> {
    let text = answer.get(field).and_then(Value::as_str).filter(|text| text.len() < 1000);
    text.map(str::to_owned).ok_or(Error::NoField { command, field })
}
