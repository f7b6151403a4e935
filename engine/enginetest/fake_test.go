package enginetest

import (
	"testing"

	"go.uber.org/goleak"

	"sbx/engine"
)

func TestFakeIsAnEngine(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	Run(t, func(t *testing.T) Harness {
		f := NewFake(t.TempDir())
		t.Cleanup(func() {
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		})
		return Harness{Engine: f, Origin: engine.Origin{Kind: engine.FromTemplate, Ref: "demo"}, Chats: true}
	})
}
