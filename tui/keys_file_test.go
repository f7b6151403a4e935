package tui

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"charm.land/bubbles/v2/key"
)

func TestEveryKeyButCtrlCCanBeRemapped(t *testing.T) {
	k := newKeys()
	named := map[*key.Binding]string{}
	for _, n := range k.named() {
		if other, ok := named[n.key]; ok {
			t.Errorf("%s and %s are the same key", n.name, other)
		}
		named[n.key] = n.name
	}
	all := reflect.ValueOf(&k).Elem()
	for i := range all.NumField() {
		name := all.Type().Field(i).Name
		if _, ok := named[all.Field(i).Addr().Interface().(*key.Binding)]; !ok && name != "Interrupt" {
			t.Errorf("keys.toml has no name for %s", name)
		}
	}
}

func TestAKeysFileChangesKeysAndHelp(t *testing.T) {
	k, bad := remap(KeysFile{Preset: "k9s", Keys: map[string][]string{"sandbox.restart": {"ctrl+R", "f5"}, "fleet.sort": {"ж"}}})
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	if got := k.Restart.Keys(); !slices.Equal(got, []string{"ctrl+r", "f5"}) {
		t.Errorf("restart is on %v", got)
	}
	if k.Restart.Help().Key != "ctrl+r" || k.Restart.Help().Desc != "restart the app" {
		t.Errorf("its help is %v", k.Restart.Help())
	}
	if !slices.Contains(k.Logs.Keys(), "l") {
		t.Errorf("the preset's key for logs isn't there: %v", k.Logs.Keys())
	}
}

func TestWhatIsWrongWithAKeysFileIsSaidAndTheRestHolds(t *testing.T) {
	for _, c := range []struct {
		name string
		file KeysFile
		want string
	}{
		{"unknown", KeysFile{Keys: map[string][]string{"sandbox.rstart": {"x"}}}, "is nothing that has a key"},
		{"clash", KeysFile{Keys: map[string][]string{"fleet.sort": {"/"}}}, `would mean`},
		{"unsendable", KeysFile{Keys: map[string][]string{"fleet.sort": {"ctrl+i"}}}, "arrives as tab"},
		{"no key", KeysFile{Keys: map[string][]string{"fleet.sort": {"hyper+q"}}}, "is no key"},
		{"none", KeysFile{Keys: map[string][]string{"fleet.sort": {}}}, "at least one"},
		{"ctrl+c", KeysFile{Keys: map[string][]string{"fleet.sort": {"ctrl+c"}}}, "always stops"},
		{"preset", KeysFile{Preset: "emacs"}, "there is k9s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.file.Keys == nil {
				c.file.Keys = map[string][]string{}
			}
			c.file.Keys["fleet.group"] = []string{"O"}
			k, bad := remap(c.file)
			if len(bad) != 1 || !strings.Contains(bad[0], c.want) {
				t.Errorf("it says %q, want one line with %q", bad, c.want)
			}
			if got := k.Group.Keys(); !slices.Equal(got, []string{"O"}) {
				t.Errorf("the rest of the file was lost: group is on %v", got)
			}
			if got := k.Sort.Keys(); !slices.Equal(got, []string{"s"}) {
				t.Errorf("sort is on %v", got)
			}
		})
	}
}
