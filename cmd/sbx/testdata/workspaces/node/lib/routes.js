module.exports = (path) => (path === "/" ? "hello" : "not here");
