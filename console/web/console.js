// Keeps a page as it would be if it were loaded again now. Nothing here is needed:
// every page and every form works without it.
(() => {
  "use strict";
  const at = (id) => document.getElementById(id);
  const light = at("live");
  if (!light || !at("main") || at("main").dataset.live === "off") return;

  const say = (word, tone) => {
    if (light.textContent === word) return;
    light.hidden = false;
    light.textContent = word;
    light.className = "live " + tone;
  };

  // What is on the page is changed into what it should be, node by node, so that
  // what a person does there stays: typing, ticks, open details, focus, selection.
  const keyOf = (n) => n.nodeType !== 1 ? "" : n.id || n.getAttribute("aria-labelledby") || n.getAttribute("action") || n.getAttribute("name") || "";
  const alike = (a, b) => a.nodeName === b.nodeName && keyOf(a) === keyOf(b);
  const theirs = (n, name) => n.nodeName === "DETAILS" && name === "open" || n.id === "main" && name === "data-live";

  const become = (from, to) => {
    if (from.nodeType !== 1) {
      if (from.data !== to.data) from.data = to.data;
      return;
    }
    for (const a of [...from.attributes]) if (!to.hasAttribute(a.name) && !theirs(from, a.name)) from.removeAttribute(a.name);
    for (const a of to.attributes) if (from.getAttribute(a.name) !== a.value && !theirs(from, a.name)) from.setAttribute(a.name, a.value);
    if (from.nodeName === "TEXTAREA") return;
    let old = from.firstChild;
    for (const next of [...to.childNodes]) {
      let same = old;
      // Only what has a name is looked for further down: else a list would be torn.
      if (same && !alike(same, next)) for (same = keyOf(next) ? old : null; same && !alike(same, next);) same = same.nextSibling;
      if (!same) {
        from.insertBefore(document.importNode(next, true), old);
        continue;
      }
      while (old !== same) {
        const gone = old;
        old = old.nextSibling;
        gone.remove();
      }
      become(old, next);
      old = old.nextSibling;
    }
    while (old) {
      const gone = old;
      old = old.nextSibling;
      gone.remove();
    }
  };

  let busy = false, again = false, sent = false, took = 0, timer = 0;
  addEventListener("submit", () => { sent = true; });
  addEventListener("pageshow", (e) => { sent = false; if (e.persisted) plan(); });

  const typed = () => [...document.querySelectorAll("main textarea, main input:not([type=hidden])")].some((e) =>
    /^(radio|checkbox)$/.test(e.type) ? e.checked !== e.defaultChecked : e.value !== e.defaultValue);

  // A page that cannot be made now stays as it was and says so: what is typed there is
  // not lost, and what it shows is not taken for what is.
  const stays = (why) => {
    let note = at("stays");
    if (!note) {
      note = document.createElement("div");
      note.id = "stays";
      note.className = "notice warning";
      note.setAttribute("role", "alert");
      note.append(document.createElement("b"), document.createElement("p"));
      note.firstChild.textContent = "This page is as it was: it could not be made anew.";
      at("main").prepend(note);
    }
    if (note.lastChild.textContent !== why) note.lastChild.textContent = why;
    setTimeout(plan, 2000);
  };

  const look = async () => {
    if (busy) { again = true; return; }
    if (sent) return;
    busy = true;
    again = false;
    const begun = performance.now();
    try {
      const answer = await fetch(location.href, {headers: {Accept: "text/html"}, cache: "no-store", signal: AbortSignal.timeout(30000)});
      if (answer.redirected) { // signed out meanwhile
        say("signed out: load the page again", "off");
        if (!typed()) location.reload();
        return;
      }
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (sent) return;
      if (answer.status >= 500 || answer.status === 429) {
        const why = page.querySelector("main .problem p");
        stays(why ? why.textContent : "The answer was " + answer.status + " " + answer.statusText);
        return;
      }
      if (!page.getElementById("main")) return;
      if (at("stays")) at("stays").remove();
      for (const id of ["main", "asof", "pages"]) {
        const to = page.getElementById(id);
        if (to && at(id)) become(at(id), to);
      }
      document.title = page.title;
    } catch { // the next look finds out
    } finally {
      busy = false;
      took = performance.now() - begun;
      if (again) plan();
    }
  };
  // A page that is dear to make is made less often.
  const plan = () => {
    if (!timer) timer = setTimeout(() => { timer = 0; look(); }, Math.min(30000, Math.max(100, 20 * took)));
  };

  let stream = null, slow = 0, heard = 0;
  const hear = () => { heard = Date.now(); };
  const listen = () => {
    if (document.hidden || stream) return;
    const mine = stream = new EventSource("/live");
    hear();
    mine.addEventListener("beat", hear);
    mine.addEventListener("open", () => {
      hear();
      say("live", "on");
      clearInterval(slow);
      slow = 0;
      plan();
    });
    mine.addEventListener("change", () => { hear(); plan(); });
    mine.addEventListener("error", () => {
      say("reconnecting", "off");
      if (!slow) slow = setInterval(plan, 15000);
      if (mine.readyState === EventSource.CLOSED) setTimeout(() => { if (stream === mine) { rest(); listen(); } }, 15000);
    });
  };
  // A page that nobody sees holds no connection: a browser has few for one site.
  const rest = () => {
    if (stream) stream.close();
    stream = null;
  };
  // An agent that hangs ends no connection: it beats every 15 s or is not there.
  setInterval(() => {
    if (!stream || Date.now() - heard < 40000) return;
    say("reconnecting", "off");
    rest();
    listen();
  }, 2000);
  document.addEventListener("visibilitychange", () => { rest(); listen(); });
  addEventListener("pagehide", rest);
  addEventListener("pageshow", listen);
  listen();
})();
