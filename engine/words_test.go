package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

func TestNamesThatCantBeShownOrTypedAreRefused(t *testing.T) {
	good := []string{"api", "api-1", "Dana's shop", "café", "日本", "🦀 crab", strings.Repeat("x", MaxName)}
	bad := []string{
		"", " ", " api", "api ", "sb-abcd", "-rf", "a/b", `a\b`, "a\x1b[31m", "a\nb", "a\x00", "a\u200bb", "a\u202eb",
		"\xff", strings.Repeat("x", MaxName+1), "a\u00adb", "e\ufe0f",
	}
	for _, name := range good {
		if err := CheckName(name); err != nil {
			t.Errorf("%q: got %v, want it allowed", name, err)
		}
	}
	for _, name := range bad {
		if err := CheckName(name); AsCode(err) != Invalid || Hint(err) == "" {
			t.Errorf("%q: got %v, want it refused with a hint", name, err)
		}
	}
}

func TestAnOwnerIsAnythingThatCanBeShown(t *testing.T) {
	for _, owner := range []string{"", "dana", `CORP\dana`, "dana@example.com", "Dana Ó", "a/b"} {
		if err := CheckOwner(owner); err != nil {
			t.Errorf("%q: got %v, want it allowed", owner, err)
		}
	}
	for _, owner := range []string{"a\x1b[31m", "a\u009b31m", "a\nb", "a\u202eb", "\xff", strings.Repeat("x", MaxName+1)} {
		if err := CheckOwner(owner); AsCode(err) != Invalid || Hint(err) == "" {
			t.Errorf("%q: got %v, want it refused with a hint", owner, err)
		}
	}
}

func TestAnEmojiIsFoundHoweverTheKeyboardWritesIt(t *testing.T) {
	s := NewSnapshot(Position{})
	name := PlainName("my shop \U0001f6cd\ufe0f")
	if err := CheckName(name); err != nil {
		t.Fatal(err)
	}
	s.Sandboxes["sb-a"] = Sandbox{ID: "sb-a", Name: name}
	for _, ref := range []string{"my shop \U0001f6cd", "my shop \U0001f6cd\ufe0f"} {
		if _, err := s.Find(ref); err != nil {
			t.Errorf("%q: %v", ref, err)
		}
	}
	if CheckName(PlainName("e\ufe0f")) == nil {
		t.Error("a selector behind a letter is no emoji's: it hides in the name")
	}
}

func TestIdsAreOfTheAgreedShapeAndShortenUniquely(t *testing.T) {
	shape := regexp.MustCompile(`^sb-[a-z2-7]{10}$`)
	seen := map[string]bool{}
	for range 1000 {
		id := NewID(SandboxPrefix)
		if !shape.MatchString(id) || seen[id] {
			t.Fatalf("id %q is of a wrong shape or came twice", id)
		}
		seen[id] = true
	}
	short := Shorten([]SandboxID{"sb-abcdefghij", "sb-abcdexxxxx", "sb-zzzzzzzzzz"})
	want := map[SandboxID]string{"sb-abcdefghij": "sb-abcdef", "sb-abcdexxxxx": "sb-abcdex", "sb-zzzzzzzzzz": "sb-zzzz"}
	for id, w := range want {
		if short[id] != w {
			t.Errorf("%s: got %s, want %s", id, short[id], w)
		}
	}
}

func TestFindTakesIdsPrefixesAndNames(t *testing.T) {
	s := NewSnapshot(Position{})
	s.Sandboxes["sb-abcdefghij"] = Sandbox{ID: "sb-abcdefghij", Name: "api"}
	s.Sandboxes["sb-abcxxxxxxx"] = Sandbox{ID: "sb-abcxxxxxxx", Name: "web"}
	for ref, want := range map[string]string{"sb-abcdefghij": "api", "sb-abcd": "api", "web": "web", "sb-abcx": "web"} {
		if sb, err := s.Find(ref); err != nil || sb.Name != want {
			t.Errorf("%s: got %q, %v, want %q", ref, sb.Name, err, want)
		}
	}
	if _, err := s.Find("sb-abc"); AsCode(err) != Invalid {
		t.Errorf("an ambiguous prefix: got %v, want invalid", err)
	}
	for _, ref := range []string{"", "sb-", "nope", "a"} {
		if _, err := s.Find(ref); AsCode(err) != NotFound {
			t.Errorf("%q: got %v, want not found", ref, err)
		}
	}
}

func TestCodesHintsAndCausesSurviveWrapping(t *testing.T) {
	cause := errors.New("disk on fire")
	err := fmt.Errorf("boot sb-1: %w", Errorf(Unavailable, "write: %w", cause).WithHint("use water"))
	if !errors.Is(err, Unavailable) || !errors.Is(err, cause) || Hint(err) != "use water" {
		t.Errorf("code, cause or hint was lost: %v", err)
	}
	wire, _ := json.Marshal(AsError(err))
	var back Error
	if err := json.Unmarshal(wire, &back); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(&back, Unavailable) || back.Message != "boot sb-1: write: disk on fire" || back.Hint != "use water" {
		t.Errorf("over the wire: %+v", back)
	}
	if AsCode(cause) != Internal || AsCode(nil) != "" || AsCode(NotFound) != NotFound {
		t.Error("AsCode gives the wrong code")
	}
}

func TestSizesAndDurationsReadBackExactly(t *testing.T) {
	for _, text := range []string{"0B", "1B", "512MiB", "2GiB", "1537B", "3TiB"} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err != nil || s.String() != text {
			t.Errorf("%s: got %s, %v", text, s, err)
		}
	}
	for text, want := range map[string]Size{"1.5GiB": 3 << 29, "2G": 2 << 30, "1kB": 1000, "4096": 4096, "1 MiB": 1 << 20} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err != nil || s != want {
			t.Errorf("%s: got %d, %v, want %d", text, s, err, want)
		}
	}
	for _, bad := range []string{"", "x", "-1MiB", "1ZiB", "1e99"} {
		if err := new(Size).UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q is taken for a size", bad)
		}
	}
	for _, bad := range []string{"", "5", "-1s", "x"} {
		if err := new(Duration).UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q is taken for a duration", bad)
		}
	}
}

func TestRolesAllowWhatTheLesserOnesMay(t *testing.T) {
	if !Admin.Allows(Viewer) || !Operator.Allows(Operator) || Viewer.Allows(Operator) || Role("root").Allows(Viewer) || Role("").Allows("") {
		t.Error("a role allows what it must not, or the reverse")
	}
}

func TestEveryActionHasARouteARoleAndWords(t *testing.T) {
	routes := map[string]bool{}
	for _, e := range ActionTable {
		route := e.Method + " " + e.Path
		if routes[route] || e.Kind == "" || e.Verb == "" || !Admin.Allows(e.Least) {
			t.Errorf("%s: a field is missing or the route %s is there twice", e.Kind, route)
		}
		routes[route] = true
		body, err := e.Decode("the-id", []byte(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		if EntryOf(body) != e {
			t.Errorf("%s decodes to a body of %s", e.Kind, EntryOf(body).Kind)
		}
		if strings.Contains(e.Path, "{id}") && body.Subject() != "the-id" {
			t.Errorf("%s: the subject of the path is not the body's", e.Kind)
		}
		if _, err := e.Decode("x", []byte(`{`)); AsCode(err) != Invalid {
			t.Errorf("%s: garbage gives %v, want invalid", e.Kind, err)
		}
	}
}
