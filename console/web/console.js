// Makes pages livelier: times of the viewer's zone that go on, names that can be copied, keys, and a page that stays as it would be
// if it were loaded again now. Nothing here is needed: every page and every form works without it.
(() => {
  "use strict";
  const at = (id) => document.getElementById(id);
  const all = (what, from = document) => [...from.querySelectorAll(what)];
  const make = (name, text = "", attributes = {}) => {
    const e = document.createElement(name);
    e.textContent = text;
    for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
    return e;
  };

  // Times. The server writes UTC and how long ago that was by its clock.
  const day = new Intl.DateTimeFormat("sv-SE", {dateStyle: "short", timeStyle: "medium"});
  const zone = (t) => new Intl.DateTimeFormat("en-US", {timeZoneName: "short"}).formatToParts(t).find((p) => p.type === "timeZoneName").value;
  let ahead = 0; // of the server's clock, in ms
  const span = (ms) => {
    const s = Math.max(0, Math.floor(ms / 1000)), m = Math.floor(s / 60), h = Math.floor(m / 60);
    if (m < 1) return s + "s";
    if (h < 1) return m + "m " + s % 60 + "s";
    return h < 24 ? h + "h " + m % 60 + "m" : Math.floor(h / 24) + "d " + h % 24 + "h";
  };
  const put = (e, text) => { if (e.textContent !== text) e.textContent = text; };
  const relative = {
    ago: (ms) => Math.abs(ms) < 1000 ? "just now" : ms > 0 ? span(ms) + " ago" : "in " + span(-ms),
    age: (ms, e) => (e.dataset.least ? "≥ " : "") + span(ms),
    left: (ms) => span(-ms),
  };
  const tick = () => {
    for (const e of all("time.ago, time.age, time.left")) put(e, relative[e.className](Date.now() + ahead - Date.parse(e.dateTime), e));
  };
  const local = () => {
    const now = document.querySelector("#asof time");
    if (now && !now.dataset.read) {
      ahead = Date.parse(now.dateTime) - Date.now();
      now.dataset.read = "1";
    }
    for (const e of all("time[datetime]")) {
      const t = new Date(e.dateTime), utc = t.toISOString().slice(0, 19).replace("T", " ") + " UTC", here = day.format(t) + " " + zone(t);
      if (e.className === "at") put(e, here);
      e.title = here === utc ? utc : e.className === "at" ? utc : here + ", " + utc;
    }
    tick();
  };
  local();
  setInterval(tick, 1000);

  // Names that are too long to be read are copied by a click.
  addEventListener("click", async (e) => {
    const name = e.target.closest("[data-copy]");
    if (!name) return;
    try {
      await navigator.clipboard.writeText(name.dataset.copy);
    } catch { // without TLS there is no clipboard
      const box = make("textarea", name.dataset.copy);
      name.after(box);
      box.select();
      document.execCommand("copy");
      box.remove();
      name.focus();
    }
    name.classList.add("copied");
    setTimeout(() => name.classList.remove("copied"), 1500);
  });

  // Menus close by Escape, and by whatever is done elsewhere.
  const menus = () => all("details.menu[open]");
  for (const what of ["click", "focusin"]) {
    addEventListener(what, (e) => menus().forEach((m) => { if (!m.contains(e.target)) m.open = false; }));
  }

  // Keys. Single ones can be switched off.
  const keys = {
    get on() { try { return localStorage.getItem("single-keys") !== "off"; } catch { return true; } },
    set on(yes) { try { localStorage.setItem("single-keys", yes ? "on" : "off"); } catch { /* for this page alone then */ } },
  };
  let asking = null; // the dialog that is open
  const dialog = (title, fill, closed = () => {}) => {
    const box = asking = make("dialog", "", {"aria-labelledby": "dialog-title"}), back = document.activeElement;
    box.append(make("h2", title, {id: "dialog-title"}));
    fill(box);
    const no = make("button", "Close", {type: "button", class: "second"});
    no.addEventListener("click", () => box.close());
    box.append(no);
    box.addEventListener("close", () => {
      closed();
      box.remove();
      asking = null;
      if (back && back.isConnected) back.focus();
    });
    document.body.append(box);
    box.showModal();
  };
  const help = () => dialog("Keyboard shortcuts", (box) => {
    const list = make("dl");
    for (const [key, what] of [["/", "find a lock"], ["j, k", "next and previous entry"], ["a, d", "approve or deny the request on this page: asks before it does"], ["?", "this list"], ["Esc", "close a menu or a question"]]) list.append(make("dt", key), make("dd", what));
    const label = make("label", "", {class: "choice"}), tick = make("input", "", {type: "checkbox", id: "single-keys"});
    tick.checked = keys.on;
    tick.addEventListener("change", () => { keys.on = tick.checked; });
    label.append(tick, make("span", "Single-key shortcuts are on (kept in this browser)"));
    box.append(list, label);
  });
  // decide asks with the page's own form, so that nothing that it wants is passed over.
  const decide = (button) => {
    const form = button.form, place = document.createComment("form"), others = all("button", form).filter((b) => b !== button);
    dialog(button.dataset.ask, (box) => {
      form.replaceWith(place);
      others.forEach((b) => { b.hidden = true; });
      box.append(form);
    }, () => {
      others.forEach((b) => { b.hidden = false; });
      place.replaceWith(form);
    });
    form.querySelector("textarea").focus();
  };
  const go = (by) => {
    const items = all("main article.card, main .rows > li, main table:not(.compare) > tbody > tr, main .members > li").filter((e) => e.offsetParent && e.querySelector("a[href], summary"));
    const now = items.findLastIndex((e) => e.contains(document.activeElement)), next = items[now < 0 && by < 0 ? items.length - 1 : now + by];
    if (!next) return;
    next.querySelector("a[href], summary").focus();
    next.scrollIntoView({block: "nearest"});
  };
  addEventListener("keydown", (e) => {
    if (e.key === "Escape") menus().forEach((m) => { m.open = false; m.querySelector("summary").focus(); });
    if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || asking || !keys.on || e.target.closest("input, textarea, select, [contenteditable]")) return;
    const button = document.querySelector("main button[data-key='" + CSS.escape(e.key) + "']");
    if (e.key === "/" && at("find")) at("find").select(), at("find").focus();
    else if (e.key === "j" || e.key === "k") go(e.key === "j" ? 1 : -1);
    else if (e.key === "?") help();
    else if (button) decide(button);
    else return;
    e.preventDefault();
  });
  if (at("keys")) {
    at("keys").hidden = false;
    at("keys").addEventListener("click", help);
  }

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
    if (asking) { plan(); return; } // the page's form is in it
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
      if (sent || asking) return;
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
      local();
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
