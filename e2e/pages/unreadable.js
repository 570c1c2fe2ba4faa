// Texts that are too pale for what is behind them, or too small on the screen. Given: the least contrast (WCAG 2.2,
// 1.4.3) and the least height of letters, in CSS pixels. In a picture, `fill` is the colour of a text.
([leastContrast, leastPixels]) => {
  const channels = (colour) => {
    const found = colour.match(/rgba?\(([^)]+)\)/);
    return found ? found[1].split(/[ ,/]+/).map(Number) : [0, 0, 0, 0];
  };
  const over = ([r, g, b, a = 1], back) => [r, g, b].map((value, i) => value * a + back[i] * (1 - a));
  const luminance = (colour) => {
    const [r, g, b] = colour.map((value) => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const behind = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) layers.push(channels(getComputedStyle(at).backgroundColor));
    return layers.reduceRight((back, layer) => over(layer, back), [255, 255, 255]);
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  while (texts.nextNode()) {
    const text = texts.currentNode.textContent.trim();
    const element = texts.currentNode.parentElement;
    const style = getComputedStyle(element);
    if (!text || !element.getClientRects().length || ["STYLE", "SCRIPT", "TITLE"].includes(element.tagName)) continue;
    const drawn = element.closest("svg") !== null;
    const back = behind(element);
    const ink = over(channels(drawn ? style.fill : style.color), back);
    const scale = drawn ? element.getScreenCTM().a || Math.abs(element.getScreenCTM().b) : 1;
    const pixels = parseFloat(style.fontSize) * scale;
    const ratio = contrast(ink, back);
    if (ratio < leastContrast || pixels < leastPixels) {
      found.push(`${text.slice(0, 40)}: contrast ${ratio.toFixed(1)}, ${pixels.toFixed(1)} px`);
    }
  }
  return [...new Set(found)];
}
