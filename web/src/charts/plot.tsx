// A chart by uPlot that fits its place, follows the theme, and can be saved.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { colours, type Colour } from "./colours";
import { useSavedAs } from "./frame";
import { recordPlot } from "./record";

export type Options = Omit<uPlot.Options, "width" | "height">;

export interface PlotProps {
  // What a screen reader says, since the picture says it nothing.
  label: string;
  data: uPlot.AlignedData;
  // Made anew when the theme or `version` changes.
  options: (colour: Colour) => Options;
  version?: string | number;
  height?: number;
  onReady?: (plot: uPlot) => void;
}

export function Plot({ label, data, options, version, height = 300, onReady }: PlotProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const colour = colours.value;
  useSavedAs(() => (plot.current === null ? undefined : recordPlot(plot.current)));
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const made = new uPlot({ ...options(colour), width: Math.max(200, element.clientWidth), height }, data, element);
    plot.current = made;
    onReady?.(made);
    const observer = new ResizeObserver(() => made.setSize({ width: Math.max(200, element.clientWidth), height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [colour, version, height]);
  useEffect(() => {
    if (plot.current !== null && plot.current.data !== data) plot.current.setData(data);
  }, [data]);
  return <div class="plot" ref={place} role="img" aria-label={label} />;
}

// An axis in the colours of the theme.
export function axis(colour: Colour, more: Partial<uPlot.Axis> = {}): uPlot.Axis {
  return {
    stroke: colour("soft"),
    grid: { stroke: colour("grid"), width: 1 },
    ticks: { stroke: colour("grid"), width: 1 },
    font: "12px system-ui, sans-serif",
    labelFont: "12px system-ui, sans-serif",
    labelSize: 18,
    ...more,
  };
}
