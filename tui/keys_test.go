package tui

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"charm.land/bubbles/v2/key"
)

func TestNoKeyMeansTwoThingsInOnePlace(t *testing.T) {
	k := newKeys()
	common := append(append(k.everywhere().keys, k.moving().keys...), k.acting().keys...)
	for _, place := range k.places() {
		t.Run(place.title, func(t *testing.T) {
			taken := map[string]string{}
			for _, b := range append(slices.Clone(common), place.keys...) {
				for _, name := range b.Keys() {
					if before, ok := taken[name]; ok {
						t.Errorf("%s means %q and %q", name, before, b.Help().Desc)
					}
					taken[name] = b.Help().Desc
				}
			}
		})
	}
}

func TestReservedCapitalsOnlyAct(t *testing.T) {
	k := newKeys()
	places := append(k.places(), k.everywhere(), k.moving())
	for _, place := range places {
		for _, b := range place.keys {
			for _, name := range b.Keys() {
				if strings.Contains("H R S A P B D", name) {
					t.Errorf("%s: %s is reserved for actions, and means %q", place.title, name, b.Help().Desc)
				}
			}
		}
	}
	for _, b := range k.acting().keys {
		if len(b.Keys()) != 1 || !strings.Contains("HRSAPBD", b.Keys()[0]) {
			t.Errorf("%v changes a sandbox and isn't a reserved capital", b.Keys())
		}
	}
}

func TestEveryKeyIsInTheHelp(t *testing.T) {
	k := newKeys()
	helped := map[string]bool{}
	for _, place := range append(k.places(), k.everywhere(), k.moving(), k.acting()) {
		for _, b := range place.keys {
			helped[fmt.Sprint(b.Keys())] = true
			if b.Help().Key == "" || b.Help().Desc == "" {
				t.Errorf("%v has no help", b.Keys())
			}
		}
	}
	all := reflect.ValueOf(k)
	for i := range all.NumField() {
		b := all.Field(i).Interface().(key.Binding)
		if !helped[fmt.Sprint(b.Keys())] {
			t.Errorf("%s is in no place, so nobody learns of %v", all.Type().Field(i).Name, b.Keys())
		}
	}
}

func TestEveryActionSaysWhatItDoes(t *testing.T) {
	w := newWorld(Config{})
	for _, a := range newActions(w.keys) {
		sb := seedSandbox(5, w.now)
		if a.title(w, sb) == "" {
			t.Errorf("%v has no title", a.key.Keys())
		}
		if a.body != nil && a.tier(sb) >= 2 && a.loses == "" {
			t.Errorf("%v asks first and doesn't say what is lost", a.key.Keys())
		}
	}
}
