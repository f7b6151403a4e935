package fake_test

import (
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/engine/driver/drivertest"
	"sbx/engine/driver/fake"
)

func TestFakeIsADriver(t *testing.T) {
	drivertest.Suite{Open: func(t *testing.T) driver.Driver {
		d := &fake.Driver{}
		t.Cleanup(func() { d.Close() })
		return d
	}}.Run(t)
}

// serve answers on port 8080 until it is killed.
func serve(ctx context.Context, p *fake.Process) int {
	l, err := p.Listen(8080)
	if err != nil {
		return 1
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") })}
	defer context.AfterFunc(ctx, func() { s.Close() })()
	_ = s.Serve(l) // ends with the context
	return 0
}

func TestAProgramIsReachedByDialAndEndsWithItsProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fake.Driver{Programs: map[string]fake.Program{"serve": serve}}
		defer d.Close()
		box, err := d.Boot(t.Context(), driver.Boot{ID: "sb-a"})
		if err != nil {
			t.Fatal(err)
		}
		out := drivertest.NewOutput()
		p, err := box.Start(t.Context(), "ps-a", driver.Command{Command: engine.Command{Shell: "sleep 3600; serve"}, Profile: driver.ProfileApp}, out, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := box.Dial(t.Context(), 8080); err == nil {
			t.Fatal("it listens before its hour")
		}
		time.Sleep(time.Hour + time.Second) // of the bubble
		conn, err := box.Dial(t.Context(), 8080)
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
		if err := p.Kill(t.Context(), time.Second); err != nil {
			t.Fatal(err)
		}
		if _, err := box.Dial(t.Context(), 8080); err == nil {
			t.Error("it listens after its end")
		}
	})
}
