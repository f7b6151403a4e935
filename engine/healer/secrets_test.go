package healer

import (
	"strings"
	"testing"

	"sbx/engine"
	"sbx/engine/redact"
)

func TestTheMarkOfASecretIsNeverWrittenInItsPlace(t *testing.T) {
	const file = "KEY=[redacted]\n"
	if err := markKept("a", file, file+"MORE=1\n"); err != nil {
		t.Error(err)
	}
	if err := markKept("a", "KEY=abc\n", "KEY="+redact.Mark+"\n"); engine.AsCode(err) != engine.Invalid {
		t.Errorf("error is %v", err)
	}
}

func TestAPatchTellsWhatItAddsToEachFile(t *testing.T) {
	got := addedBy("diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-old\n+new\n+++ b/fake\n context\n" +
		"diff --git a/y b/y\ndeleted file mode 100644\n--- a/y\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n")
	if len(got) != 1 || got["x"] != "new\n++ b/fake\n" {
		t.Errorf("got %q", got)
	}
}

func TestOnlyFilesOfAnEnvironmentAreReadForSecrets(t *testing.T) {
	for name, want := range map[string]bool{
		".env": true, ".env.local": true, "prod.env": true, ".env.example": false, ".env.sample": false, "environment.js": false, "sample.env": false,
	} {
		if isEnvFile(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

func TestASandboxesSecretsAreHiddenWithTheEngines(t *testing.T) {
	h := &heal{
		loop: &loop{Healer: &Healer{Redact: redact.New("engine-secret").String}},
		hide: redact.New("sandbox-secret"),
	}
	if got := h.words("engine-secret sandbox-secret rest"); strings.Contains(got, "secret") || !strings.HasSuffix(got, "rest") {
		t.Error(got)
	}
}
