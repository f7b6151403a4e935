const fs = require("node:fs");
const http = require("node:http");
const routes = require("./lib/routes");

const has = (file) => fs.existsSync(file);

// A fault that passes: so many starts fail.
if (has("flaky")) {
  const left = Number(fs.readFileSync("flaky", "utf8"));
  if (left > 0) {
    fs.writeFileSync("flaky", String(left - 1));
    console.error("the moon is in the wrong place");
    process.exit(1);
  }
}

// A server that must not run twice.
if (has("tmp/server.pid")) {
  console.error("a server is already running: check tmp/server.pid");
  process.exit(1);
}

// What a supervisor keeps of itself.
if (has(".pm2/dump.pm2")) {
  try {
    JSON.parse(fs.readFileSync(".pm2/dump.pm2", "utf8"));
  } catch (err) {
    console.error("can't resurrect from .pm2/dump.pm2: " + err.message);
    process.exit(1);
  }
}

// A bundler's cache.
if (has(".cache/build.json")) {
  try {
    JSON.parse(fs.readFileSync(".cache/build.json", "utf8"));
  } catch (err) {
    console.error("could not read " + process.cwd() + "/.cache/build.json: " + err.message);
    process.exit(1);
  }
}

// A variable that must be set.
if (has(".env.example")) {
  const env = has(".env") ? fs.readFileSync(".env", "utf8") : "";
  if (!/^GREETING=/m.test(env)) {
    console.error("GREETING is not set: see .env.example");
    process.exit(1);
  }
}

let sick = false;
const server = http.createServer((req, res) => {
  console.log(req.method + " " + req.url);
  if (has("sick")) {
    const how = fs.readFileSync("sick", "utf8").trim();
    fs.rmSync("sick");
    if (how === "once") {
      res.statusCode = 500;
      return res.end("just once");
    }
    sick = true;
  }
  if (sick) {
    res.statusCode = 500;
    return res.end("out of sorts");
  }
  res.end(req.url === "/health" ? "ok" : routes(req.url));
});
const listen = () => server.listen(process.env.PORT, () => console.log("listening on " + process.env.PORT));
if (has("slow")) {
  console.log("warming up");
  setTimeout(listen, Number(fs.readFileSync("slow", "utf8")));
} else {
  listen();
}
