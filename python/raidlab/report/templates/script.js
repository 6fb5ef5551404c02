// Tabs and tooltips. Without it the page shows everything, one part below the other.
(() => {
  "use strict";
  const choosers = new Map();
  for (const list of document.querySelectorAll("[data-tabs]")) {
    const tabs = [...list.querySelectorAll("a")];
    const panels = tabs.map((tab) => document.getElementById(tab.hash.slice(1)));
    const choose = (chosen) => {
      tabs.forEach((tab, index) => {
        tab.setAttribute("aria-selected", String(index === chosen));
        tab.tabIndex = index === chosen ? 0 : -1;
        panels[index].toggleAttribute("data-chosen", index === chosen);
      });
    };
    list.setAttribute("role", "tablist");
    tabs.forEach((tab, index) => {
      tab.setAttribute("role", "tab");
      tab.setAttribute("aria-controls", panels[index].id);
      panels[index].setAttribute("role", "tabpanel");
      choosers.set(panels[index], () => choose(index));
      tab.addEventListener("click", (event) => {
        event.preventDefault();
        choose(index);
      });
      tab.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (step === undefined) return;
        const next = (index + step + tabs.length) % tabs.length;
        choose(next);
        tabs[next].focus();
        event.preventDefault();
      });
    });
    choose(0);
  }
  // What follows no rule of encoding stands for itself.
  const idOf = (text) => {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  };
  // A link into what is not shown shows it.
  const reveal = () => {
    const wanted = location.hash && document.getElementById(idOf(location.hash.slice(1)));
    for (let part = wanted; part; part = part.parentElement) {
      if (choosers.has(part)) choosers.get(part)();
      if (part.tagName === "DETAILS") part.open = true;
    }
    if (wanted) wanted.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  if (location.hash) reveal();
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => (one.open = true)));

  const tip = document.getElementById("tip");
  const near = 26;
  let pointed = null;
  let byKey = false;
  const hide = () => {
    if (pointed) pointed.classList.remove("pointed");
    pointed = null;
    tip.hidden = true;
  };
  const show = (mark, key = false) => {
    if (mark === pointed) return;
    hide();
    pointed = mark;
    byKey = key;
    mark.classList.add("pointed");
    tip.textContent = mark.getAttribute("aria-label");
    tip.hidden = false;
    place();
  };
  const place = () => {
    const at = pointed.getBoundingClientRect();
    const own = tip.getBoundingClientRect();
    const left = Math.max(6, Math.min(innerWidth - own.width - 6, at.x + at.width / 2 - own.width / 2));
    const top = at.y - own.height - 8 < 4 ? at.y + at.height + 8 : at.y - own.height - 8;
    tip.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
  };
  const distance = (box, x, y) =>
    Math.hypot(Math.max(box.left - x, 0, x - box.right), Math.max(box.top - y, 0, y - box.bottom));
  for (const chart of document.querySelectorAll("svg.chart")) {
    // A chart that is drawn anew while one looks at it has other marks then.
    const marksNow = () => [...chart.querySelectorAll("[aria-label]")];
    if (!marksNow().length && !("live" in chart.dataset)) continue;
    const point = (event) => {
      let best = null;
      let least = near;
      for (const mark of marksNow()) {
        const box = mark.getBoundingClientRect();
        // Of marks that overlap the smaller one is meant.
        const away = distance(box, event.clientX, event.clientY) + Math.min(box.width * box.height, 1e4) / 1e6;
        if (away < least) [best, least] = [mark, away];
      }
      if (best) show(best);
      else hide();
    };
    chart.addEventListener("pointermove", point);
    chart.addEventListener("pointerdown", point);
    chart.addEventListener("pointerleave", hide);
    chart.tabIndex = 0;
    chart.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape") hide();
      const marks = marksNow();
      if (step === undefined || !marks.length) return;
      show(marks[(Math.max(marks.indexOf(pointed), step < 0 ? 0 : -1) + step + marks.length) % marks.length], true);
      event.preventDefault();
    });
    chart.addEventListener("blur", hide);
  }
  // To be focused a chart may have to be scrolled to, and that is told only after the key.
  addEventListener("scroll", () => (pointed && byKey ? place() : hide()), { passive: true });
})();
