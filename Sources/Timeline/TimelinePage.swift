import JSON
import LifecycleCore

/// `plot --html`: one file with the data and the program that draws it. It loads nothing, and needs no network.
package enum TimelinePage {
    package static let maximumBars = 100_000

    package static func html(_ timeline: Timeline) -> String {
        // Within a script element, the end of the element is the only text that HTML would read.
        let data = timeline.json.serialized(pretty: false).replacing("<", with: "\\u003c")
        let colors = JSONValue.object(TimelineDrawing.colors.map { ($0.state.rawValue, .string($0.color)) })
        return """
            <!DOCTYPE html>
            <html lang="en">
            <meta charset="utf-8">
            <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
            <meta name="viewport" content="width=device-width">
            <title>Greenroom timeline</title>
            <style>\(style)</style>
            <header>Greenroom timeline <span id="span"></span>
            <small>wheel: zoom · drag: move · double click or 0: all · + − ← →</small></header>
            <ul id="problems"></ul>
            <div id="lanes"><canvas id="canvas" tabindex="0" aria-label="A lane for each app"></canvas></div>
            <p id="sentence" role="status">Point at a bar to read what happened.</p>
            <script type="application/json" id="data">\(data)</script>
            <script>const colors = \(colors.serialized(pretty: false));
            \(program)</script>
            </html>

            """
    }

    private static let style = """
        body{margin:0;font:13px system-ui,sans-serif;color:#222;background:#fff}
        header{padding:8px 12px;font-weight:600} small,#span{font-weight:400;color:#666;margin-left:1em}
        #problems{margin:0;color:#a33;padding-left:28px} canvas{display:block;outline:none;cursor:crosshair}
        #sentence{position:sticky;bottom:0;margin:0;padding:8px 12px;background:#f4f6f9;border-top:1px solid #ccd;min-height:1.3em}
        """

    /// Draws only what is visible, so that zooming stays fast.
    private static let program = #"""
        'use strict';
        const data = JSON.parse(document.getElementById('data').textContent);
        const canvas = document.getElementById('canvas'), pen = canvas.getContext('2d');
        const output = document.getElementById('sentence');
        const LEFT = 170, AXIS = 24, BAR = 18, ROW = 7, CURVE = 18, GAP = 9;
        const outcomes = {met: '#6f7f95', missed: '#d9534f', cancelled: '#b9bfca'};
        const levels = {normal: '#dfe8df', warning: '#f2b134', critical: '#d9534f'};
        let from = 0, to = Math.max(1, data.duration), boxes = [], centers = {};
        function rows(bars) {
          const rows = [];
          for (const bar of bars) {
            let row = rows.find(r => r[r.length - 1].to <= bar.from);
            if (!row) rows.push(row = []);
            row.push(bar);
          }
          return rows;
        }
        // The lanes: strips of bars, marks and curves, one below the other.
        const strips = [];
        let height = AXIS;
        function strip(kind, items, size, name, color) {
          strips.push({kind, items, y: height, size, name, color});
          height += size;
        }
        function center(key) { centers[key] = height + BAR / 2; }
        center('requests'); strip('marks', data.requests, BAR, 'requests'); height += GAP;
        center('input');
        strip('marks', data.arrows.filter(a => a.from === 'input').map(a => ({at: a.fromAt, sentence: a.sentence})), BAR, 'input');
        height += GAP;
        center('memory'); strip('bars', data.machine.levels, BAR, 'memory', b => levels[b.label]);
        strip('curve', data.machine.availableBytes, CURVE, 'available', '#7aa37a');
        if (data.machine.stalls.some(s => s[1])) strip('curve', data.machine.stalls, CURVE, 'stalled ‰', '#c98a8a');
        height += GAP;
        for (const app of data.apps) {
          center('app ' + app.app);
          strip('marks', app.marks, 0, '');
          strip('bars', app.states, BAR, app.app, b => colors[b.label]);
          for (const row of rows(app.deadlines)) strip('bars', row, ROW, '', b => outcomes[b.outcome] || '#b9bfca');
          for (const row of rows(app.tasks)) strip('bars', row, ROW, '', () => '#8e6bbf');
          if (app.memoryBytes.length) strip('curve', app.memoryBytes, CURVE, '', '#9db4d6');
          height += GAP;
        }
        function x(t) { return LEFT + (t - from) / (to - from) * (canvas.clientWidth - LEFT - 10); }
        function time(px) { return from + (px - LEFT) / (canvas.clientWidth - LEFT - 10) * (to - from); }
        function clock(t) {
          if (data.startMicroseconds === null) return '+' + (t / 1e6).toFixed(3) + 's';
          const date = new Date((data.startMicroseconds + t) / 1000);
          return date.toLocaleTimeString([], {hour12: false}) + '.' + String(date.getMilliseconds()).padStart(3, '0');
        }
        function size(bytes) {
          const units = ['B', 'K', 'M', 'G', 'T'];
          let unit = 0;
          while (bytes >= 1024 && unit < 4) { bytes /= 1024; unit++; }
          return (unit && bytes < 100 ? bytes.toFixed(1) : Math.round(bytes)) + units[unit];
        }
        function axis() {
          const steps = [1e3, 1e4, 1e5, 1e6, 2e6, 5e6, 1e7, 3e7, 6e7, 3e8, 6e8, 1.8e9, 3.6e9, 2.16e10, 8.64e10];
          const step = steps.find(s => (to - from) / s <= 8) || (to - from) / 8;
          pen.fillStyle = '#666'; pen.strokeStyle = '#e4e4e4';
          for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
            pen.beginPath(); pen.moveTo(x(t), AXIS); pen.lineTo(x(t), height); pen.stroke();
            // The last one ends at the edge of the page.
            const text = clock(t), edge = canvas.clientWidth - 2;
            pen.fillText(text, Math.min(x(t) + 2, edge - pen.measureText(text).width), 14);
          }
        }
        function bars(s) {
          for (const bar of s.items) {
            if (bar.to < from || bar.from > to) continue;
            const a = Math.max(LEFT, x(bar.from)), b = Math.min(canvas.clientWidth, x(bar.to)), w = Math.max(1, b - a);
            const h = s.size === BAR ? BAR : s.size - 2;
            pen.fillStyle = s.color(bar) || '#999';
            pen.fillRect(a, s.y, w, h);
            boxes.push({x: a, y: s.y, w: Math.max(3, w), h, item: bar, start: bar.from});
            if (s.size === BAR && w > bar.label.length * 7 + 6) {
              pen.fillStyle = ['suspended', 'normal', 'launching', 'inactive', 'warning'].includes(bar.label) ? '#222' : '#fff';
              pen.fillText(bar.label, a + 4, s.y + 13);
            }
          }
        }
        function marks(s) {
          for (const mark of s.items) {
            if (mark.at < from || mark.at > to) continue;
            const y = s.size ? s.y + s.size / 2 : s.y + BAR + 1;
            pen.fillStyle = mark.kind === 'ended' || mark.kind === 'deadlineMissed' ? '#d9534f' : '#333';
            pen.beginPath(); pen.arc(x(mark.at), y, 2.5, 0, 7); pen.fill();
            boxes.push({x: x(mark.at) - 4, y: y - 4, w: 8, h: 8, item: mark, start: mark.at});
          }
        }
        function curve(s) {
          const most = s.items.reduce((m, p) => Math.max(m, p[1]), 0);
          if (!most) return;
          pen.fillStyle = s.color;
          s.items.forEach(([at, value], i) => {
            const end = i + 1 < s.items.length ? s.items[i + 1][0] : data.duration;
            if (end < from || at > to) return;
            const a = Math.max(LEFT, x(at)), w = Math.max(0.5, x(end) - a), h = value / most * (s.size - 3);
            pen.fillRect(a, s.y + s.size - h, w + 0.5, h);
            const text = s.name === 'stalled ‰' ? 'tasks stalled on memory in ' + value / 10 + '% of the time'
              : (s.name ? s.name + ' memory: ' : 'footprint: ') + size(value);
            boxes.push({x: a, y: s.y, w, h: s.size, item: {sentence: text}, start: at});
          });
        }
        function arrows() {
          pen.strokeStyle = '#444'; pen.fillStyle = '#444';
          for (const arrow of data.arrows) {
            const a = centers[arrow.from === 'app' ? 'app ' + arrow.fromApp : arrow.from], b = centers['app ' + arrow.toApp];
            if (a === undefined || b === undefined || a === b || arrow.toAt < from || arrow.fromAt > to) continue;
            const [x1, x2] = [x(arrow.fromAt), x(arrow.toAt)], down = b > a, y2 = b + (down ? -BAR / 2 : BAR / 2);
            if (x1 < LEFT || x2 < LEFT) continue;
            pen.beginPath(); pen.moveTo(x1, a); pen.bezierCurveTo(x1, (a + y2) / 2, x2, (a + y2) / 2, x2, y2); pen.stroke();
            pen.beginPath(); pen.moveTo(x2, y2); pen.lineTo(x2 - 3, y2 + (down ? -6 : 6)); pen.lineTo(x2 + 3, y2 + (down ? -6 : 6));
            pen.fill();
            boxes.push({x: x2 - 4, y: y2 - (down ? 7 : 0), w: 8, h: 7, item: arrow, start: arrow.fromAt});
          }
        }
        function draw() {
          const ratio = window.devicePixelRatio || 1, width = document.documentElement.clientWidth;
          canvas.style.width = width + 'px'; canvas.style.height = height + 'px';
          canvas.width = width * ratio; canvas.height = height * ratio;
          pen.setTransform(ratio, 0, 0, ratio, 0, 0);
          pen.font = '11px system-ui, sans-serif';
          boxes = [];
          axis();
          for (const s of strips) if (s.kind === 'curve') curve(s);
          for (const s of strips) if (s.kind === 'bars') bars(s);
          for (const s of strips) if (s.kind === 'marks') marks(s);
          arrows();
          pen.fillStyle = '#fff'; pen.fillRect(0, AXIS, LEFT - 1, height);
          pen.fillStyle = '#222'; pen.textAlign = 'right';
          for (const s of strips) if (s.name) pen.fillText(s.name.length > 24 ? s.name.slice(0, 23) + '…' : s.name, LEFT - 8, s.y + 13);
          pen.textAlign = 'left';
          document.getElementById('span').textContent = clock(from) + ' – ' + clock(to);
          document.body.dataset.drawn = boxes.length;
        }
        function zoom(factor, at) {
          const middle = at === undefined ? (from + to) / 2 : at;
          const span = Math.min(data.duration || 1, Math.max(1000, (to - from) * factor));
          from = middle - (middle - from) / (to - from) * span; to = from + span; clamp();
        }
        function move(by) { from += by; to += by; clamp(); }
        function clamp() {
          const span = to - from, end = Math.max(1, data.duration);
          if (from < 0) { from = 0; to = span; }
          if (to > end) { to = end; from = Math.max(0, end - span); }
          draw();
        }
        function all() { from = 0; to = Math.max(1, data.duration); draw(); }
        function find(px, py) {
          for (let i = boxes.length - 1; i >= 0; i--) {
            const b = boxes[i];
            if (px >= b.x && px <= b.x + b.w && py >= b.y && py <= b.y + b.h) return b;
          }
        }
        function show(px, py) {
          const box = px >= LEFT ? find(px, py) : undefined;
          output.textContent = box ? clock(box.start) + '  ' + box.item.sentence : clock(time(px));
          canvas.title = box ? box.item.sentence : '';
        }
        let drag = null;
        canvas.addEventListener('wheel', e => { e.preventDefault(); zoom(e.deltaY < 0 ? 0.8 : 1.25, time(e.offsetX)); }, {passive: false});
        canvas.addEventListener('pointerdown', e => { drag = e.offsetX; canvas.setPointerCapture(e.pointerId); });
        canvas.addEventListener('pointerup', () => { drag = null; });
        canvas.addEventListener('pointermove', e => {
          if (drag !== null) { const by = time(drag) - time(e.offsetX); drag = e.offsetX; move(by); }
          show(e.offsetX, e.offsetY);
        });
        canvas.addEventListener('dblclick', all);
        document.addEventListener('keydown', e => {
          const step = (to - from) / 10;
          const actions = {'+': () => zoom(0.8), '=': () => zoom(0.8), '-': () => zoom(1.25), '0': all,
            ArrowLeft: () => move(-step), ArrowRight: () => move(step)};
          if (actions[e.key]) { e.preventDefault(); actions[e.key](); }
        });
        for (const problem of data.problems) {
          const item = document.createElement('li');
          item.textContent = problem;
          document.getElementById('problems').append(item);
        }
        window.addEventListener('resize', draw);
        draw();
        """#
}
