package healer

import (
	"bytes"
	"context"
	"encoding/json"
	"path"
	"strings"

	"sbx/engine"
	"sbx/engine/agent"
	"sbx/engine/driver"
)

// kit is the ten tools of one attempt. What they may not do is decided here, in
// code, and again by the confinement that they run in.
type kit struct {
	h *heal
	// seen are the versions that the model has seen of files, so that it
	// overwrites nothing that somebody changed after it looked.
	seen map[string]engine.Version
	// acted: something was called that can change what runs.
	acted bool
	files driver.Files
	// staged is where writes go in a run that only plans; else nil.
	staged *staged
}

func newKit(h *heal) *kit {
	k := &kit{h: h, seen: map[string]engine.Version{}}
	if h.staged != nil {
		k.staged, k.files = h.staged, h.staged
	} else if h.box != nil {
		k.files = h.box.Files()
	}
	return k
}

// tool is one tool of the kit.
type tool struct {
	name, about, schema string
	// acts: it may change what runs. tracked: what changes in the workspace
	// during a call is the run's.
	acts, tracked bool
	call          func(ctx context.Context, input json.RawMessage) (string, error)
}

func (t tool) Name() string            { return t.name }
func (t tool) Description() string     { return t.about }
func (t tool) Schema() json.RawMessage { return json.RawMessage(t.schema) }

// Call does it. Whatever comes back is made harmless and bounded here.
func (t tool) Call(ctx context.Context, input json.RawMessage) (string, error) {
	return t.call(ctx, input)
}

// all are the tools in the order in which every request names them.
func (k *kit) all() []tool {
	if k.staged != nil {
		return k.planning()
	}
	return []tool{
		k.read(), k.write(), k.edit(), k.list(), k.search(),
		k.run(), k.install(), k.probe(), k.restart(), k.wait(),
	}
}

func (k *kit) tools() []agent.Tool {
	var list []agent.Tool
	for _, t := range k.all() {
		list = append(list, t)
	}
	return list
}

// around wraps every call: it keeps the run's changes apart from everybody
// else's, and lets nothing through that is secret, hidden or too long.
func (k *kit) around(ctx context.Context, c agent.Call, do func() (string, error)) (text, diff string, err error) {
	h := k.h
	h.diff = ""
	t := k.named(c.Name)
	k.acted = k.acted || t.acts
	if t.tracked && h.track != nil {
		var called error
		diff, err = h.track.around(ctx, own(c.Name, c.Input), func() error {
			text, called = do()
			return nil
		})
		err = firstError(called, err)
	} else {
		text, err = do()
	}
	if h.diff != "" {
		diff = h.diff
	}
	return bound(clean(h.redact(text)), maxOutput), diff, h.cleanError(err)
}

func (k *kit) named(name string) tool {
	for _, t := range k.all() {
		if t.name == name {
			return t
		}
	}
	return tool{}
}

// own is the one path that a call can have changed: a write or an edit its own,
// so that a save by somebody in the same moment is not taken for the run's.
func own(name string, input json.RawMessage) string {
	var in struct {
		Path string `json:"path"`
	}
	if name != "write" && name != "edit" {
		return ""
	}
	if json.Unmarshal(input, &in) != nil || in.Path == "" {
		return "." // no file is called so: nothing is the run's
	}
	return path.Clean(in.Path)
}

// cleanError keeps an error's code and hint, and makes its words harmless.
func (h *heal) cleanError(err error) error {
	if err == nil || h.fatal(context.Background(), err) != nil {
		return err
	}
	e := engine.AsError(err)
	return &engine.Error{Code: e.Code, Message: bound(clean(h.redact(e.Message)), maxOutput), Hint: e.Hint, Err: err}
}

// decode reads a tool's input strictly: what is misspelt is an error, and
// nothing gets a default that the model did not ask for.
func decode[T any](input json.RawMessage) (T, error) {
	var in T
	d := json.NewDecoder(bytes.NewReader(input))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return in, engine.Errorf(engine.Invalid, "input: %w", err)
	}
	return in, nil
}

// checkPath refuses what the healer may never write: anything outside of the
// workspace, protected paths, repositories' insides, and sbx's own files. The
// file system of the box refuses the first two by itself as well.
func checkPath(name string, protected []string) error {
	p := path.Clean(name)
	switch {
	case name == "" || strings.ContainsRune(name, 0):
		return engine.Errorf(engine.Invalid, "path is empty or has a zero byte")
	case path.IsAbs(name):
		return engine.Errorf(engine.Invalid, "%s: paths are relative to the workspace", line(name, maxArgument))
	case p == ".." || strings.HasPrefix(p, "../"):
		return engine.Errorf(engine.Invalid, "%s is outside of the workspace", line(name, maxArgument))
	case p == ".":
		return engine.Errorf(engine.Invalid, "a path of a file is needed")
	}
	for part := range strings.SplitSeq(p, "/") {
		if strings.EqualFold(part, ".git") {
			return forbidden(p, "git's own")
		}
	}
	if p == "sbx.toml" || p == ".sbx" || strings.HasPrefix(p, ".sbx/") || strings.HasPrefix(p, ".sbx.") {
		return forbidden(p, "sbx's own")
	}
	for _, prot := range protected {
		if prot = path.Clean(prot); p == prot || strings.HasPrefix(p, prot+"/") || prot == "." {
			return forbidden(p, "protected by the spec")
		}
		if ok, err := path.Match(prot, p); ok && err == nil {
			return forbidden(p, "protected by the spec")
		}
	}
	return nil
}

func forbidden(p, why string) error {
	return engine.Errorf(engine.Forbidden, "protected: %s is %s and must stay as it is", p, why)
}

// writable is checkPath, and refuses a way through a symbolic link, which
// could lead to a protected path by another name.
func (k *kit) writable(ctx context.Context, name string) (string, error) {
	if err := checkPath(name, k.h.sb.Spec.Heal.Protected); err != nil {
		return "", err
	}
	p := path.Clean(name)
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		list, err := k.files.ReadDir(ctx, path.Dir(dir))
		if err != nil {
			if engine.AsCode(err) == engine.NotFound {
				continue // made with the file
			}
			return "", err
		}
		for _, fi := range list {
			if path.Base(fi.Name) == path.Base(dir) && fi.Target != "" {
				return "", engine.Errorf(engine.Forbidden, "%s is a symbolic link: use the path that it leads to", dir)
			}
		}
	}
	return p, nil
}
