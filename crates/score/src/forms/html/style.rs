//! How the page looks.

use crate::plot::INKS;
use std::fmt::Write;

/// The style of the page: readable on paper without colours, in the dark, and on a narrow screen.
/// It loads nothing.
pub fn style() -> String {
    let mut style = STYLE.to_owned();
    // Plots have colours for white paper; these lines let the page replace them.
    for (_, colour, property) in INKS {
        let _ = write!(
            style,
            "svg [fill=\"{colour}\"]{{fill:var({property})}}svg [stroke=\"{colour}\"]{{stroke:var({property})}}"
        );
    }
    style
}

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1f1f1f;--faint:#5c5c5c;--grid:#dadada;--value:#1d5fa8;--other:#a34a00;--paper:#fefefe;--band:#f3f4f6}
@media screen and (prefers-color-scheme:dark){:root{--ink:#e8e8e8;--faint:#b0b0b0;--grid:#404346;--value:#7fb2ec;--other:#f0a266;--paper:#16181a;--band:#212427}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1rem 1rem 4rem;max-width:64rem;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
h1{font-size:1.7rem;line-height:1.2;margin:1rem 0 .25rem}
h2{font-size:1.25rem;margin:2.5rem 0 .5rem;padding-top:.5rem;border-top:1px solid var(--grid)}
h3{font-size:1rem;margin:1.5rem 0 .5rem}
p{margin:.5rem 0;max-width:46rem}
.faint,figcaption,caption{color:var(--faint)}
figcaption,caption{font-size:.875rem}
caption{text-align:left;padding:0 0 .35rem}
bdi,code{overflow-wrap:anywhere}
code{font:.875em ui-monospace,monospace}
.wide{overflow-x:auto}
.wide th[scope=row]{position:sticky;left:0;background:var(--paper)}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9375rem}
th,td{padding:.3rem .7rem .3rem 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--grid)}
th{font-weight:600}
thead th{vertical-align:bottom;border-bottom:2px solid var(--faint)}
.number{text-align:right;white-space:nowrap}
.checker-name{white-space:normal;overflow-wrap:anywhere;min-width:7.25rem;max-width:9rem}
.range{display:block;color:var(--faint);font-size:.8125rem;font-weight:400}
.range.right .range{color:inherit}
.wrong{font-weight:600}
.stream{min-width:10rem;max-width:16rem}
.name{min-width:7rem;max-width:18rem}
figure{margin:.5rem 0;overflow-x:auto}
svg{display:block;width:100%;height:auto;min-width:25rem}
.large svg{min-width:42rem}
svg text{font-family:inherit}
.checker{display:grid;grid-template-columns:minmax(0,1fr);gap:.5rem 2rem;align-items:start}
@media(min-width:52rem){.checker{grid-template-columns:minmax(0,1fr) minmax(0,1fr)}}
.matrix td{text-align:right;padding:.4rem .7rem;border:1px solid var(--grid);min-width:5.5rem}
.matrix th{padding:.4rem .7rem}
.matrix thead td{border:0}
.all{width:100%}
thead td{border-bottom:0}
thead tr+tr td{border-bottom:2px solid var(--faint)}
th[scope=colgroup]{border-bottom:1px solid var(--grid);padding-left:1.5rem}
.places tr>:nth-child(2),.places tr>:nth-child(6){padding-left:1.5rem}
.right{background:color-mix(in srgb,var(--value) calc(var(--share)*1%),var(--paper))}
.wrong{font-weight:600}
.met::before{content:'\\2713\\00a0'}
.missed::before{content:'\\2717\\00a0'}
.missed{font-weight:600;color:var(--other)}
details{margin:.5rem 0}
summary{cursor:pointer;font-weight:600}
@media print{body{max-width:none;padding:0;font-size:11pt}figure,tr,.checker{break-inside:avoid}details::details-content{content-visibility:visible}svg,.large svg{min-width:0}}
";
