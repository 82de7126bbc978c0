import React from "react";

interface Props {
  name: string;
}

export const App: React.FC<Props> = ({ name }) => {
  return <Title text={name} />;
};

export default function Title({ text }: { text: string }) {
  return <h1 id="title">{text}</h1>;
}
