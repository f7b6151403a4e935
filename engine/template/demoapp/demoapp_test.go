package demoapp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// workspace is one with a shop that works, and further files.
func workspace(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	all := append([]string{"config.json", `{"name":"Shop <1>","parts":["menu.txt"]}`, "parts/menu.txt", "plum & rye\n"}, files...)
	for i := 0; i+1 < len(all); i += 2 {
		name := filepath.Join(dir, all[i])
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(all[i+1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// running runs f until the test ends and returns where it listens.
func running(t *testing.T, f func(ctx context.Context, stdout io.Writer) int) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- f(ctx, in)
		in.Close()
	}()
	var at string
	if _, err := fmt.Fscanf(out, "listening on %s\n", &at); err != nil {
		t.Fatal("it did not start: ", err)
	}
	go io.Copy(io.Discard, out) // ends with in
	t.Cleanup(func() {
		cancel()
		if c := <-code; c != 0 {
			t.Errorf("exit %d after a stop", c)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return at
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestShopServesItsPartsAndSeesEdits(t *testing.T) {
	dir := workspace(t)
	url := running(t, func(ctx context.Context, w io.Writer) int { return Main(ctx, dir, 0, w, io.Discard) })
	if code, body := get(t, url+"/health"); code != 200 || body != "ok\n" {
		t.Errorf("health is %d %q", code, body)
	}
	if _, body := get(t, url); !strings.Contains(body, "<h1>Shop &lt;1&gt;</h1>\n<pre>plum &amp; rye</pre>") {
		t.Errorf("page is %s", body)
	}
	if err := os.WriteFile(filepath.Join(dir, "parts/menu.txt"), []byte("poppy"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, body := get(t, url); !strings.Contains(body, "poppy") {
		t.Errorf("page is %s", body)
	}
	if err := os.Remove(filepath.Join(dir, "parts/menu.txt")); err != nil {
		t.Fatal(err)
	}
	if code, body := get(t, url); code != 500 || !strings.Contains(body, "cannot find part parts/menu.txt") {
		t.Errorf("page is %d %s", code, body)
	}
}

func TestShopFailsAsRealProgramsDo(t *testing.T) {
	held, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	port := held.Addr().(*net.TCPAddr).Port
	for _, c := range []struct {
		name, want string
		files      []string
		port       int
	}{
		{"a broken config", "config.json:3: invalid character '}'", []string{"config.json", "{\n  \"name\": \"x\",\n}\n"}, 0},
		{"a config of another kind", "config.json:2: json: cannot unmarshal", []string{"config.json", "{\n\"parts\": 3}"}, 0},
		{"a config cut short", "config.json:1: unexpected end of JSON input", []string{"config.json", `{"name"`}, 0},
		{"a missing part", "cannot find part parts/hours.txt", []string{"config.json", `{"parts":["menu.txt","hours.txt"]}`}, 0},
		{"a part outside", "cannot read part parts/../../x", []string{"config.json", `{"parts":["../../x"]}`}, 0},
		{"a held port", "address already in use", nil, port},
	} {
		t.Run(c.name, func(t *testing.T) {
			var stderr bytes.Buffer
			code := Main(t.Context(), workspace(t, c.files...), c.port, io.Discard, &stderr)
			if code != 1 || !strings.Contains(stderr.String(), c.want) {
				t.Errorf("exit %d with %q, want %q", code, stderr.String(), c.want)
			}
		})
	}
	var stderr bytes.Buffer
	if code := Main(t.Context(), t.TempDir(), 0, io.Discard, &stderr); code != 1 || stderr.String() != "cannot read config.json: no such file or directory\n" {
		t.Errorf("exit %d with %q", code, stderr.String())
	}
}

func TestInstallPutsPartsBackAndLeavesTheRest(t *testing.T) {
	menu, err := store.ReadFile("parts/menu.txt")
	if err != nil {
		t.Fatal(err)
	}
	dir := workspace(t, "parts.lock", "# parts\nmenu.txt "+sum(menu)+"\n\n", "parts/own.txt", "mine")
	for _, want := range []string{"installed 1 of 1 parts\n", "installed 0 of 1 parts\n"} {
		var out bytes.Buffer
		if code := Install(dir, &out, &out); code != 0 || out.String() != want {
			t.Errorf("exit %d with %q, want %q", code, out.String(), want)
		}
	}
	got, _ := os.ReadFile(filepath.Join(dir, "parts/menu.txt"))
	own, _ := os.ReadFile(filepath.Join(dir, "parts/own.txt"))
	if string(got) != string(menu) || string(own) != "mine" {
		t.Errorf("menu is %q, own is %q", got, own)
	}
}

func TestInstallRefusesALockThatCannotBeMet(t *testing.T) {
	for lock, want := range map[string]string{
		"menu.txt 00":        "part menu.txt is another one than parts.lock says",
		"../evil 00":         `there is no part "../evil"`,
		"x.txt 00":           `there is no part "x.txt"`,
		"\n# x\nonly-a-name": "parts.lock:3: want a name and a sum",
	} {
		var stderr bytes.Buffer
		if code := Install(workspace(t, "parts.lock", lock), io.Discard, &stderr); code != 1 || !strings.Contains(stderr.String(), want) {
			t.Errorf("%q: exit %d with %q", lock, code, stderr.String())
		}
	}
	var stderr bytes.Buffer
	if code := Install(t.TempDir(), io.Discard, &stderr); code != 1 || !strings.Contains(stderr.String(), "cannot read parts.lock") {
		t.Errorf("exit %d with %q", code, stderr.String())
	}
}

func TestStaticServesFilesButHiddenOnes(t *testing.T) {
	dir := workspace(t, "index.html", "<h1>hi", "a/b.txt", "b", ".env", "SECRET=1", "a/.git/config", "x")
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	url := running(t, func(ctx context.Context, w io.Writer) int { return Static(ctx, dir, 0, w, io.Discard) })
	for path, want := range map[string]int{
		"/": 200, "/health": 200, "/a/b.txt": 200, "/a/": 404, "/.env": 404, "/a/.git/config": 404,
		"/link": 404, "/../../etc/passwd": 404, "/none": 404,
	} {
		code, body := get(t, url+path)
		if code != want {
			t.Errorf("%s is %d %q", path, code, body)
		}
		if strings.Contains(body, "SECRET") {
			t.Errorf("%s shows what is hidden", path)
		}
	}
	var stderr bytes.Buffer
	if code := Static(t.Context(), filepath.Join(dir, "none"), 0, io.Discard, &stderr); code != 1 || !strings.Contains(stderr.String(), "cannot serve") {
		t.Errorf("exit %d with %q", code, stderr.String())
	}
}

func TestCommandNeedsAPort(t *testing.T) {
	for _, port := range []string{"", "x", "70000"} {
		var stderr bytes.Buffer
		if code := command(t.Context(), nil, port, io.Discard, &stderr); code != 1 || !strings.Contains(stderr.String(), "PORT is") {
			t.Errorf("%q: exit %d with %q", port, code, stderr.String())
		}
	}
	if code := command(t.Context(), []string{"--nope"}, "1", io.Discard, io.Discard); code != 2 {
		t.Errorf("exit %d", code)
	}
}
