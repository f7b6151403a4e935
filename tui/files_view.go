package tui

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"sbx/engine"
	"sbx/themes"
	"sbx/tui/draw"
	"sbx/tui/style"
)

// treeWidth is the width of the tree beside a file.
const treeWidth = 46

// View is the tree, and beside it the file; on a narrow screen the one that has
// the focus.
func (f *files) View() string {
	if f.width < middleWidth {
		if f.onView {
			return f.fileView(f.width)
		}
		return f.treeView(f.width)
	}
	return beside(f.w, f.treeView(treeWidth), f.fileView(f.width-treeWidth-1))
}

func (f *files) treeView(width int) string {
	p := &panel{w: f.w, width: width, height: f.height}
	if f.found != nil {
		f.foundView(p)
		return p.text()
	}
	rows := f.tree.rows()
	note := strconv.Itoa(len(rows)) + " shown"
	if f.input.Focused() || f.tree.filter != "" {
		note = "/" + f.tree.filter
	}
	if f.asking == '&' && f.input.Focused() {
		note = "& " + f.input.Value() + "█"
	}
	p.title("Files", note, themes.Muted, !f.onView)
	switch {
	case f.err != nil:
		for _, l := range draw.Wrap(f.err.Error(), width-3, 4) {
			p.add(p.pen().Gap(1).Put(themes.Error, l))
		}
		p.add(p.pen().Gap(1).Put(themes.Key, f.w.keys.Retry.Help().Key).Put(themes.Text, " tries again"))
		return p.text()
	case len(rows) == 0 && f.asked[""]:
		p.add(p.pen().Gap(1).Put(themes.Muted, "loading…"))
		return p.text()
	case len(rows) == 0:
		p.add(p.pen().Gap(1).Put(themes.Muted, "nothing here"))
		return p.text()
	}
	f.at()
	f.top = max(min(f.top, f.place), f.place-f.height+2)
	f.top = max(0, min(f.top, len(rows)-1))
	for _, l := range rows[f.top:min(len(rows), f.top+f.height-1)] {
		f.leaf(p, l)
	}
	return p.text()
}

// leaf is one row of the tree: name, whether it changed, size, age.
func (f *files) leaf(p *panel, l leaf) {
	pen := p.pen()
	if l.path == f.cursor {
		pen.Again(style.Selected).Put(themes.BorderFocus, "▌")
	} else {
		pen.Gap(1)
	}
	pen.Gap(min(2*l.depth, 20))
	name, role := l.info.Name, themes.Text
	switch {
	case l.info.Mode.IsDir():
		sign := f.w.glyphs.Folded
		if f.tree.open[l.path] {
			sign = f.w.glyphs.Unfolded
		}
		name, role = sign+" "+name+"/", themes.Accent
		if slices.Contains(rebuildable, l.info.Name) {
			role = themes.Muted
		}
	case l.info.Target != "":
		name += " → " + l.info.Target
		fallthrough
	default:
		pen.Gap(2)
	}
	pen.Cell(role, name, max(4, pen.Left()-16))
	changeRole := map[engine.ChangeKind]themes.Role{engine.Added: themes.DiffAdd, engine.Modified: themes.Warning, engine.Deleted: themes.DiffDel}
	if c, ok := f.change[l.path]; ok {
		pen.Cell(changeRole[c], string(c), 2)
	} else {
		pen.Gap(2)
	}
	if !l.info.Mode.IsDir() {
		pen.CellRight(themes.Muted, memory(engine.Size(l.info.Size)), 7)
	} else {
		pen.Gap(7)
	}
	p.add(pen.CellRight(themes.Muted, ago(f.w.asOf(), l.info.ModTime), 6))
}

// foundView are the lines that a search in all files found.
func (f *files) foundView(p *panel) {
	note := fmt.Sprintf("%d of %d", min(f.hit+1, len(f.found.list)), len(f.found.list))
	if len(f.found.list) == foundLines {
		note += " or more"
	}
	p.title("“"+f.found.text+"”", note, themes.Muted, !f.onView)
	if f.found.err != nil {
		p.add(p.pen().Gap(1).Put(themes.Error, f.found.err.Error()))
	}
	if len(f.found.list) == 0 {
		p.add(p.pen().Gap(1).Put(themes.Muted, "no line has it; Esc goes back to the tree"))
	}
	top := max(0, min(f.hit-f.height/2, len(f.found.list)-f.height+1))
	for i := top; i < min(len(f.found.list), top+f.height-1); i++ {
		hit, pen := f.found.list[i], p.pen()
		if i == f.hit {
			pen.Again(style.Selected).Put(themes.BorderFocus, "▌")
		} else {
			pen.Gap(1)
		}
		at := path.Base(hit.Name) + ":" + strconv.Itoa(hit.Line)
		p.add(pen.Cell(themes.Accent, at, min(22, p.width/2)).Gap(1).Put(themes.Text, strings.TrimSpace(hit.Text)))
	}
}

func (f *files) fileView(width int) string {
	p := &panel{w: f.w, width: width, height: f.height}
	v := &f.view
	if v.name == "" {
		p.title("File", "", themes.Muted, false)
		p.add(p.pen().Gap(1).Put(themes.Key, f.w.keys.Open.Help().Key).Put(themes.Muted, " opens what is under the cursor"))
		return p.text()
	}
	p.title(v.name, f.fileNote(), themes.Muted, f.onView)
	switch {
	case f.edit != nil:
		f.editing(p)
	case v.diff:
		f.diffView(p)
	case v.loading:
		p.add(p.pen().Gap(1).Put(themes.Muted, "loading…"))
	case v.err != nil:
		p.add(p.pen().Gap(1).Put(themes.Error, v.err.Error()))
	case v.lines == nil:
		p.add(p.pen().Gap(1).Put(themes.Text, "not text, "+memory(engine.Size(v.file.Size))+"B"))
		p.add(p.pen().Gap(1).Put(themes.Key, f.w.keys.Save.Help().Key).Put(themes.Muted, " downloads it"))
	default:
		f.lines(p)
	}
	return p.text()
}

func (f *files) fileNote() string {
	v := &f.view
	switch {
	case f.edit != nil && f.edit.saving:
		return "saving…"
	case f.edit != nil && f.edit.dirty():
		return "edited, not saved"
	case f.edit != nil:
		return "saved"
	case v.diff && f.good.ID != "":
		return "since the good checkpoint of " + clock(f.good.Created)
	case v.part:
		return "the first " + memory(shownPart) + "B of " + memory(engine.Size(v.file.Size)) + "B"
	}
	return plural(len(v.lines), "line")
}

func (f *files) lines(p *panel) {
	v := &f.view
	v.top = max(0, min(v.top, len(v.lines)-1))
	for i := v.top; i < min(len(v.lines), v.top+f.height-1); i++ {
		text := strings.TrimSuffix(strings.ReplaceAll(v.lines[i], "\t", "    "), "\r")
		p.add(p.pen().CellRight(themes.Muted, strconv.Itoa(i+1), 5).Gap(2).Put(themes.Text, text))
	}
}

// diffView is what changed in the file since the last good checkpoint.
func (f *files) diffView(p *panel) {
	part := patchOf(f.patch, f.view.name)
	if part == "" {
		words := "no change since the last good checkpoint"
		if f.good.ID == "" {
			words = "there is no good checkpoint yet: one is made a minute after the sandbox is ready"
		}
		p.add(p.pen().Gap(1).Put(themes.Muted, words))
		return
	}
	lines := stepPainter{set: f.w.styles, width: p.width, now: f.w.asOf()}.diff(part)
	f.view.top = max(0, min(f.view.top, len(lines)-1))
	for _, l := range lines[f.view.top:] {
		p.put(l)
	}
}

// patchOf is the part of a unified diff that is about one file.
func patchOf(patch, name string) string {
	var b strings.Builder
	in := false
	for line := range strings.Lines(patch) {
		if strings.HasPrefix(line, "diff ") {
			in = strings.HasSuffix(strings.TrimRight(line, "\n"), " b/"+name)
		}
		if in {
			b.WriteString(line)
		}
	}
	return b.String()
}

// editing is the text around the cursor.
func (f *files) editing(p *panel) {
	e := f.edit
	lines := strings.Split(e.input.Value(), "\n")
	row := min(e.input.Line(), len(lines)-1)
	height := f.height - 1
	f.view.top = max(min(f.view.top, row), row-height+1)
	room := max(1, p.width-8)
	for i := max(0, f.view.top); i < min(len(lines), f.view.top+height); i++ {
		pen := p.pen().CellRight(themes.Muted, strconv.Itoa(i+1), 5).Gap(2)
		runes := []rune(lines[i])
		if i != row {
			p.add(pen.Put(themes.Text, strings.ReplaceAll(string(runes), "\t", "    ")))
			continue
		}
		col := min(e.input.Column(), len(runes))
		from := max(0, col-room+1)
		drawInput(pen, strings.ReplaceAll(string(runes[from:]), "\t", " "), col-from)
		p.add(pen)
	}
}
