"""What tests ask a page in a browser: text that is too faint to read, and texts of charts that lie over each other."""

from __future__ import annotations

# Text against what lies behind it, as WCAG 2.2 defines contrast; large text is text of 24 px, or of 18.66 px in bold.
TOO_FAINT = """() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d");
  const parse = (colour) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const linear = (part) => (part /= 255) <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const found = parse(getComputedStyle(at).backgroundColor);
      if (found[3] === 255) return found;
    }
    return [255, 255, 255, 255];
  };
  const faint = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const owner = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !owner.checkVisibility() || owner.closest("script, style, .sr")) continue;
    const style = getComputedStyle(owner);
    const ink = parse(owner.namespaceURI.endsWith("svg") ? style.fill : style.color);
    const [a, b] = [light(ink), light(behind(owner))].sort((x, y) => y - x);
    const size = parseFloat(style.fontSize);
    const least = size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5;
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < least) faint.push(`${walker.currentNode.data.trim().slice(0, 40)} ${contrast.toFixed(2)}`);
  }
  return faint;
}"""
OVERLAPS = """() => [...document.querySelectorAll("svg.chart")].flatMap((chart) => {
  if (!chart.checkVisibility()) return [];
  const texts = [...chart.querySelectorAll("text")].filter((text) => text.textContent.trim());
  const boxes = texts.map((text) => text.getBoundingClientRect());
  const found = [];
  for (let i = 0; i < boxes.length; i += 1) for (let j = i + 1; j < boxes.length; j += 1) {
    const width = Math.min(boxes[i].right, boxes[j].right) - Math.max(boxes[i].left, boxes[j].left);
    const height = Math.min(boxes[i].bottom, boxes[j].bottom) - Math.max(boxes[i].top, boxes[j].top);
    if (width > 2 && height > 3) found.push(`${texts[i].textContent} / ${texts[j].textContent}`);
  }
  return found;
})"""
